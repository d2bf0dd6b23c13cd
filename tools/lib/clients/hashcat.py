# SPDX-License-Identifier: Apache-2.0
"""Debian's hashcat: one dictionary attack on a hash of each of ten modes, with its self-test and its autotune."""
import base64
import hashlib
import hmac
import os
import shutil

from .case import Case

TITLE = "hashcat 6.2.6"
LANDMARK = None
WORD = b"password"
SALT = b"27182818"
ROUNDS = 1000
# hashcat prints these if its kernels compute wrong numbers, or are too slow for the launches that it measures.
COMPLAINTS = ("self-test failed", "autotune failure")


def pbkdf2():
    key = hashlib.pbkdf2_hmac("sha256", WORD, SALT, ROUNDS, 32)
    return f"sha256:{ROUNDS}:{base64.b64encode(SALT).decode()}:{base64.b64encode(key).decode()}"


# The modes' numbers, and hashes by OpenSSL through Python's hashlib. md5crypt is from `openssl passwd -1 -salt abcdefgh password`; NTLM is
# MD4, which OpenSSL 3 has no longer: the value is printed in many descriptions of it.
HASHES = {
    "0 MD5": hashlib.md5(WORD).hexdigest(),
    "10 salted MD5": f"{hashlib.md5(WORD + SALT).hexdigest()}:{SALT.decode()}",
    "100 SHA-1": hashlib.sha1(WORD).hexdigest(),
    "500 md5crypt": "$1$abcdefgh$G//4keteveJp0qb8z2DxG/",
    "600 BLAKE2b-512": "$BLAKE2$" + hashlib.blake2b(WORD).hexdigest(),
    "1000 NTLM": "8846f7eaee8fb117ad06bdd830b7586c",
    "1400 SHA2-256": hashlib.sha256(WORD).hexdigest(),
    "1450 HMAC-SHA256": f"{hmac.new(WORD, SALT, 'sha256').hexdigest()}:{SALT.decode()}",
    "1700 SHA2-512": hashlib.sha512(WORD).hexdigest(),
    "10900 PBKDF2-HMAC-SHA256": pbkdf2(),
}


def home(job):
    """hashcat's own folder: it finds its kernels beside the program if that is not in /usr/bin."""
    unpacked = job.debian("hashcat", "hashcat-data", "libminizip1", "libxxhash0")
    folder = job.work("home")
    shutil.copy(unpacked / "usr/bin/hashcat", folder)
    for each in (unpacked / "usr/share/hashcat").iterdir():
        if each.name != "modules":
            (folder / each.name).symlink_to(each)
    (folder / "modules").symlink_to(unpacked / "usr/lib/hashcat/modules")
    (folder / "words").write_text("".join(f"word{number}\n" for number in range(1000)) + WORD.decode() + "\n")
    libraries = str(unpacked / "usr/lib/x86_64-linux-gnu") + ":" + os.environ.get("LD_LIBRARY_PATH", "")
    return folder, {"HOME": folder, "LD_LIBRARY_PATH": libraries}


def cases(job):
    folder, variables = home(job)
    logs = job.work("results")

    def crack(name):
        mode = name.split()[0]
        command = ["./hashcat", "-m", mode, "-a", "0", "--potfile-disable", "--restore-disable", f"--session=mode{mode}",
                   f"--outfile={logs}/{mode}.found", HASHES[name], "words"]
        ended = job.run(command, logs / f"{mode}.log", folder, variables)
        found = logs / f"{mode}.found"
        complaint = next((text for text in COMPLAINTS if text in ended.output), None)
        if complaint:
            return Case(name, "failed", f"hashcat says: {complaint}"), ended.seconds
        if not found.exists() or not found.read_text().rstrip("\n").endswith(f":{WORD.decode()}"):
            return Case(name, "failed", f"not found, and hashcat ended with {ended.status}"), ended.seconds
        return Case(name, "passed"), ended.seconds

    for name, (case, seconds) in job.side_by_side(crack, job.selected(HASHES)):
        print(f"{name:<30} {case.outcome} in {seconds:.0f} s {case.reason}", flush=True)
        yield case
