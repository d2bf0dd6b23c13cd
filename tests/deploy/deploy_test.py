#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks each file of deploy/ as far as possible without a cluster, and compares it with a real server's options and metrics.

usage: deploy_test.py QUERN_SERVE Systemd|Compose|Kubernetes|Prometheus|Grafana

Exits with status 77 (skipped) if a program or module that the part needs is missing; tools/setup --level deploy installs them.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
sys.path.insert(0, str(ROOT / "tests/serve"))
import server as serving  # noqa: E402

try:
    import yaml
except ImportError:
    yaml = None

# The programs and modules that each part needs.
NEEDS = {"Systemd": ["systemd-analyze"], "Compose": ["yaml"], "Kubernetes": ["yaml"], "Prometheus": ["yaml", "promtool"], "Grafana": []}


def run(*words, **options):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=60, **options)


def options_of_server():
    """Names of the options of quern serve; those that are flags; those that name files."""
    text = run(serving.PROGRAM, "--help").stdout
    rows = re.findall(r"(?m)^  (?:-\w,)?--([a-z-]+)([^\n]*)", text)
    return {name: rest for name, rest in rows}


def documents(path):
    return [each for each in yaml.safe_load_all(path.read_text()) if each is not None]


class Case(unittest.TestCase):
    def check_settings(self, text, mounted=None):
        """Checks a TOML file of `quern serve`: options must be known, and a server must accept it. `mounted`: the files in its container."""
        settings = tomllib.loads(text)
        options = options_of_server()
        self.assertLessEqual(set(settings), set(options))
        for name, value in settings.items():
            if "FILE" in options[name] and mounted is not None:
                self.assertIn(value, mounted, name)
        return settings

    def check_start(self, text, folder):
        """Checks that the server starts with these options; only the paths of its files and sockets differ."""
        settings = tomllib.loads(text)
        place = pathlib.Path(folder)
        for name, value in settings.items():
            if isinstance(value, str) and value.startswith("/"):
                (place / name).write_text("ab" * 32 + "\n")
                (place / name).chmod(0o600)
                settings[name] = str(place / name)
        settings.update(listen=[f"unix:{folder}/sock"], workers=1)
        if "store" in settings:
            settings["store"] = f"redis+unix:{folder}/no-redis"
        (place / "serve.toml").write_text("".join(f"{name} = {json.dumps(value)}\n" for name, value in settings.items()))
        server = serving.Server("--config", place / "serve.toml", listen=False)
        self.addCleanup(server.stop)
        server.socket = f"{folder}/sock"
        return server.ready()


class Systemd(Case):
    UNIT = DEPLOY / "systemd/quern-serve.service"

    def entries(self, name):
        return re.findall(rf"(?m)^{name}=(.*)$", self.UNIT.read_text())

    def test_the_unit_is_valid(self):
        with tempfile.TemporaryDirectory() as folder:
            # The programs of the unit are not installed here, so the same unit is checked with installed ones.
            unit = pathlib.Path(folder, "quern-serve.service")
            unit.write_text(self.UNIT.read_text().replace("/usr/bin/quern", "/bin/true"))
            done = run("systemd-analyze", "verify", "--man=no", unit, env={**os.environ, "SYSTEMD_UNIT_PATH": f"{folder}:"})
            complaints = [line for line in done.stderr.splitlines() if "quern" in line]
            self.assertEqual(complaints, [])
            broken = pathlib.Path(folder, "quern-broken.service")
            broken.write_text(unit.read_text().replace("KillMode=mixed", "KilMode=mixed"))
            self.assertIn("KilMode", run("systemd-analyze", "verify", "--man=no", broken).stderr)

    def test_it_is_confined(self):
        with tempfile.TemporaryDirectory() as folder:
            unit = pathlib.Path(folder, "quern-serve.service")
            unit.write_text(self.UNIT.read_text())
            done = run("systemd-analyze", "security", "--offline=true", "--threshold=20", "--no-pager", unit)
            self.assertEqual(done.returncode, 0, done.stdout[-500:] + done.stderr)

    def test_workers_can_still_confine_themselves(self):
        allowed = set()
        sets, name = {}, None
        for line in run("systemd-analyze", "syscall-filter", "--no-pager").stdout.splitlines():
            if line.startswith("@"):
                name = line.strip()
                sets[name] = []
            elif name and line.strip() and not line.strip().startswith("#"):
                sets[name].append(line.strip())

        def add(word):
            for each in sets[word] if word.startswith("@") else [word]:
                if each.startswith("@"):
                    add(each)
                else:
                    allowed.add(each)
        for line in self.entries("SystemCallFilter"):
            for word in line.split():
                add(word)
        needed = set(re.findall(r"QUERN_ALLOW(?:_IF)?\((\w+)", (ROOT / "src/serve/worker/system_calls.def").read_text()))
        self.assertGreater(len(needed), 30)
        needed |= set(re.findall(r"SYS_(\w+)", (ROOT / "src/serve/worker/sandbox.cpp").read_text())) - {"clone3", "QUERN"}
        needed |= {"prctl", "setrlimit", "prlimit64", "execve", "clone", "socketpair", "accept4", "signalfd4", "eventfd2"}
        self.assertEqual(sorted(needed - allowed - {"name"}), [])  # the last is of the table's description

    def test_times_and_places_agree(self):
        settings = self.check_settings((DEPLOY / "systemd/serve.toml").read_text())
        self.assertGreater(int(self.entries("TimeoutStopSec")[0]), settings["drain-timeout"])
        self.assertEqual(self.entries("KillMode"), ["mixed"])
        tmpfiles = (DEPLOY / "systemd/quern-serve.tmpfiles").read_text()
        folders = dict(re.findall(r"(?m)^d (\S+) \S+ (\S+)", tmpfiles))
        self.assertEqual(folders["/run/quern"], self.entries("User")[0])
        self.assertEqual(self.entries("Environment"), ["QUERN_CACHE_DIR=/var/cache/" + self.entries("CacheDirectory")[0]])
        self.assertIn("unix:/run/" + self.entries("RuntimeDirectory")[0] + "/quern.sock", settings["listen"])
        self.assertRegex((DEPLOY / "systemd/quern-serve.sysusers").read_text(), rf"(?m)^u {self.entries('User')[0]} ")
        [start] = self.entries("ExecStart")
        self.assertEqual(start.split()[:3], ["/usr/bin/quern", "serve", "--config"])

    def test_the_options_in_comments_exist_too(self):
        text = re.sub(r"(?m)^# (?=[a-z-]+ = )", "", (DEPLOY / "systemd/serve.toml").read_text())
        self.assertLessEqual(set(re.findall(r"(?m)^([a-z-]+) = ", text)), set(options_of_server()))

    def test_a_server_starts_with_them(self):
        with tempfile.TemporaryDirectory() as folder:
            server = self.check_start((DEPLOY / "systemd/serve.toml").read_text(), folder)
            self.assertEqual(server.ask("GET", "/v1/stats").status, 401)
            server.stop()

    def test_folders_and_users_are_made(self):
        if not shutil.which("systemd-tmpfiles"):
            self.skipTest("there is no systemd-tmpfiles")
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "etc").mkdir()
            users = run("systemd-sysusers", "--root", folder, DEPLOY / "systemd/quern-serve.sysusers")
            self.assertEqual(users.returncode, 0, users.stderr)
            self.assertIn("quern:", pathlib.Path(folder, "etc/passwd").read_text())
            made = run("systemd-tmpfiles", "--root", folder, "--create", DEPLOY / "systemd/quern-serve.tmpfiles")
            self.assertEqual(made.returncode, 0, made.stderr)
            self.assertEqual(os.stat(f"{folder}/var/cache/quern").st_mode & 0o777, 0o700)


class Compose(Case):
    @classmethod
    def setUpClass(cls):
        cls.folder = DEPLOY / "compose"
        cls.document = yaml.safe_load((cls.folder / "compose.yaml").read_text())
        cls.servers = [each for name, each in cls.document["services"].items() if name.startswith("quern-")]

    def test_files_secrets_and_services_that_are_named_exist(self):
        used = set()
        for name, service in self.document["services"].items():
            self.assertTrue({"image", "build"} & set(service), name)
            for volume in service.get("volumes", []):
                source = volume.split(":")[0]
                self.assertTrue((self.folder / source).resolve().is_file(), source)
            used.update(service.get("secrets", []))
            needs = service.get("depends_on", [])
            self.assertLessEqual(set(needs), set(self.document["services"]), name)
            for each, condition in needs.items() if isinstance(needs, dict) else ():
                self.assertEqual(condition["condition"] == "service_healthy", "healthcheck" in self.document["services"][each])
            for port in service.get("ports", []):
                self.assertTrue(port.startswith("127.0.0.1:"), port)
        self.assertEqual(used, set(self.document["secrets"]))
        self.assertEqual(len(self.servers), 3)
        for service in self.servers:
            self.assertTrue((self.folder / service["build"]["context"] / service["build"]["dockerfile"]).is_file())

    def test_the_secrets_are_made_as_the_programs_read_them(self):
        with tempfile.TemporaryDirectory() as folder:
            done = run(self.folder / "make-secrets", folder)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual({each.name for each in pathlib.Path(folder).iterdir()}, {pathlib.Path(each["file"]).name for each in self.document["secrets"].values()})
            first = pathlib.Path(folder, "tokens").read_text()
            self.assertEqual(run(self.folder / "make-secrets", folder).returncode, 0)
            self.assertEqual(pathlib.Path(folder, "tokens").read_text(), first)
            self.assertEqual(pathlib.Path(folder, "redis-auth.conf").read_text(), "requirepass " + pathlib.Path(folder, "redis-password").read_text())
            for each in pathlib.Path(folder).iterdir():
                self.assertEqual(each.stat().st_mode & 0o007, 0)

    def test_a_server_starts_with_the_options(self):
        for service in self.servers:
            self.assertEqual(service["command"], ["--config", "/etc/quern/serve.toml"])
        mounted = {"/run/secrets/" + each for each in self.servers[0]["secrets"]}
        text = (self.folder / "serve.toml").read_text()
        settings = self.check_settings(text, mounted)
        self.assertGreater(int(self.servers[0]["stop_grace_period"].rstrip("s")), settings["drain-timeout"])
        self.assertEqual(re.match(r"redis://([^:]+):", settings["store"]).group(1), "redis")
        with tempfile.TemporaryDirectory() as folder:
            self.check_start(text, folder).stop()

    def test_the_balancer_knows_all_servers(self):
        text = (self.folder / "haproxy.cfg").read_text()
        servers = dict(re.findall(r"(?m)^ +server (\S+) (\S+)", text))
        self.assertEqual(servers, {name: name + ":8471" for name in self.document["services"] if name.startswith("quern-")})
        self.assertEqual(self.document["services"]["balancer"]["ports"], ["127.0.0.1:8471:8471"])
        if not shutil.which("haproxy"):
            self.skipTest("there is no haproxy")
        done = run("haproxy", "-c", "-f", self.folder / "haproxy.cfg")
        self.assertEqual((done.returncode, [line for line in done.stderr.splitlines() if "ALERT" in line]), (0, []), done.stderr)

    def test_prometheus_asks_all_servers(self):
        [job] = yaml.safe_load((self.folder / "prometheus.yaml").read_text())["scrape_configs"]
        self.assertEqual(job["static_configs"][0]["targets"], ["quern-1:8471", "quern-2:8471", "quern-3:8471"])
        self.assertEqual(job["job_name"], "quern")  # that the alerts name
        if shutil.which("promtool"):
            with tempfile.TemporaryDirectory() as folder:
                shutil.copy(DEPLOY / "prometheus/quern.rules.yaml", folder)
                pathlib.Path(folder, "tokens").write_text("x")
                config = pathlib.Path(folder, "prometheus.yaml")
                config.write_text((self.folder / "prometheus.yaml").read_text().replace("/run/secrets/", folder + "/"))
                done = run("promtool", "check", "config", config)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_the_image_has_the_libraries_of_the_programs(self):
        if not shutil.which("dpkg-query"):
            self.skipTest("this is no Debian")
        text = (self.folder / "Dockerfile").read_text()
        installed = set(re.findall(r"[a-z0-9.+-]+", text.split("FROM debian:bookworm-slim")[1].split("&&")[1]))
        needed = set()
        for library in re.findall(r"=> (/\S+)", run("ldd", serving.PROGRAM).stdout):
            owner = run("dpkg-query", "-S", os.path.realpath(library)).stdout.split(":")[0]
            if owner:
                needed.add(owner)
        self.assertGreater(len(needed), 3)
        self.assertEqual(needed - installed - {"libc6", "libgcc-s1"}, set())
        build = set(re.findall(r"[a-z0-9.+-]+", text.split("&&")[1]))
        rows = re.findall(r"(?m)^([a-z0-9.+-]+) +\S", (ROOT / "tools/lib/packages.sh").read_text().split("packages_of_test")[0])
        self.assertEqual(set(rows) - build - {"llvm-19-dev"}, set())

    def test_compose_takes_the_file(self):
        if not shutil.which("docker") or run("docker", "compose", "version").returncode != 0:
            self.skipTest("there is no docker compose")
        done = run("docker", "compose", "-f", self.folder / "compose.yaml", "config", "--quiet")
        self.assertEqual(done.returncode, 0, done.stderr)


class Kubernetes(Case):
    @classmethod
    def setUpClass(cls):
        cls.folder = DEPLOY / "kubernetes"
        cls.names = yaml.safe_load((cls.folder / "kustomization.yaml").read_text())["resources"]
        cls.all = [each for name in cls.names for each in documents(cls.folder / name)]
        cls.by_kind = {}
        for each in cls.all:
            cls.by_kind.setdefault(each["kind"], {})[each["metadata"]["name"]] = each

    def pods(self):
        for kind in ("Deployment", "StatefulSet"):
            for name, each in self.by_kind[kind].items():
                yield name, each, each["spec"]["template"]

    def test_every_file_is_part_of_it_and_every_object_has_its_place(self):
        self.assertEqual(sorted(self.names + ["kustomization.yaml"]), sorted(each.name for each in self.folder.glob("*.yaml")))
        versions = {"Namespace": "v1", "ConfigMap": "v1", "Service": "v1", "Deployment": "apps/v1", "StatefulSet": "apps/v1",
                    "HorizontalPodAutoscaler": "autoscaling/v2", "PodDisruptionBudget": "policy/v1", "NetworkPolicy": "networking.k8s.io/v1"}
        for each in self.all:
            self.assertEqual(each["apiVersion"], versions[each["kind"]])
            if each["kind"] != "Namespace":
                self.assertEqual(each["metadata"]["namespace"], "quern")
        self.assertEqual(len(self.all), sum(map(len, self.by_kind.values())), "two objects have one name")

    def test_selectors_select_pods(self):
        labels = {name: template["metadata"]["labels"] for name, _, template in self.pods()}

        def selected(selector):
            return [name for name, own in labels.items() if selector.items() <= own.items()]
        for name, each, _ in self.pods():
            self.assertEqual(selected(each["spec"]["selector"]["matchLabels"]), [name])
        for name, each in self.by_kind["Service"].items():
            self.assertEqual(selected(each["spec"]["selector"]), [name])
        for name, each in self.by_kind["PodDisruptionBudget"].items():
            self.assertEqual(selected(each["spec"]["selector"]["matchLabels"]), [name])
        for each in self.by_kind["NetworkPolicy"].values():
            peers = [peer for rule in each["spec"].get("ingress", []) for peer in rule.get("from", [])] + [peer for rule in each["spec"].get("egress", []) for peer in rule.get("to", [])]
            for selector in [each["spec"]["podSelector"], *(peer["podSelector"] for peer in peers if "podSelector" in peer)]:
                self.assertTrue(selected(selector.get("matchLabels", {})), each["metadata"]["name"])

    def test_ports_are_named_where_they_are_used(self):
        ports = {name: {port["name"] for c in template["spec"]["containers"] for port in c["ports"]} for name, _, template in self.pods()}
        for name, each in self.by_kind["Service"].items():
            self.assertLessEqual({port["targetPort"] for port in each["spec"]["ports"]}, ports[name])
        for name, _, template in self.pods():
            for container in template["spec"]["containers"]:
                for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
                    for how in ("httpGet", "tcpSocket"):
                        if how in container.get(probe, {}):
                            self.assertIn(container[probe][how]["port"], ports[name])
        every = set().union(*ports.values())
        for each in self.by_kind["NetworkPolicy"].values():
            for rule in each["spec"].get("ingress", []) + each["spec"].get("egress", []):
                self.assertLessEqual({p["port"] for p in rule["ports"] if isinstance(p["port"], str)}, every)

    def test_volumes_configuration_and_secrets_exist(self):
        made = {"tokens", "store-key", "redis-password", "redis-auth.conf"}  # by deploy/compose/make-secrets
        text = (DEPLOY / "README.md").read_text()
        self.assertIn("create secret generic quern-secrets", text)
        for name, _, template in self.pods():
            volumes = {each["name"]: each for each in template["spec"]["volumes"]}
            for container in template["spec"]["containers"]:
                self.assertEqual({mount["name"] for mount in container["volumeMounts"]}, set(volumes))
                for mount in container["volumeMounts"]:
                    if "subPath" in mount:
                        config = self.by_kind["ConfigMap"][volumes[mount["name"]]["configMap"]["name"]]
                        self.assertIn(mount["subPath"], config["data"])
            for each in volumes.values():
                if "secret" in each:
                    self.assertEqual(each["secret"]["secretName"], "quern-secrets")
                    self.assertLessEqual({item["key"] for item in each["secret"]["items"]}, made)
                    self.assertEqual(each["secret"]["defaultMode"] & 0o007, 0)

    def test_pods_are_confined_and_bounded(self):
        for name, _, template in self.pods():
            own = template["spec"]["securityContext"]
            self.assertTrue(own["runAsNonRoot"] and own["seccompProfile"] == {"type": "RuntimeDefault"} and not template["spec"]["automountServiceAccountToken"], name)
            for container in template["spec"]["containers"]:
                inner = container["securityContext"]
                self.assertEqual((inner["allowPrivilegeEscalation"], inner["readOnlyRootFilesystem"], inner["capabilities"]), (False, True, {"drop": ["ALL"]}))
                self.assertIn("memory", container["resources"]["limits"])
                self.assertLessEqual({"cpu", "memory"}, set(container["resources"]["requests"]))

    def test_a_server_starts_with_the_options_and_answers_its_probes(self):
        template = self.by_kind["Deployment"]["quern-serve"]["spec"]["template"]["spec"]
        [container] = template["containers"]
        self.assertEqual(container["args"], ["--config", "/etc/quern/serve.toml"])
        secret = next(each["secret"] for each in template["volumes"] if "secret" in each)
        mount = next(each["mountPath"] for each in container["volumeMounts"] if each["name"] == "secrets")
        text = self.by_kind["ConfigMap"]["quern-config"]["data"]["serve.toml"]
        settings = self.check_settings(text, {f"{mount}/{item['path']}" for item in secret["items"]})
        self.assertEqual(settings["workers"], int(container["resources"]["requests"]["cpu"]))
        delay = int(container["lifecycle"]["preStop"]["exec"]["command"][1])
        self.assertGreater(template["terminationGracePeriodSeconds"], settings["drain-timeout"] + delay)
        host = re.match(r"redis://([^:]+):(\d+)", settings["store"])
        [port] = self.by_kind["Service"][host.group(1)]["spec"]["ports"]
        self.assertEqual(port["port"], int(host.group(2)))
        self.assertEqual(settings["listen"], [f"tcp:0.0.0.0:{container['ports'][0]['containerPort']}"])
        with tempfile.TemporaryDirectory() as folder:
            server = self.check_start(text, folder)
            for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
                self.assertEqual(server.ask("GET", container[probe]["httpGet"]["path"]).status, 200)
            server.stop()

    def test_the_autoscaler_scales_the_deployment(self):
        [scaler] = self.by_kind["HorizontalPodAutoscaler"].values()
        target = scaler["spec"]["scaleTargetRef"]
        deployment = self.by_kind[target["kind"]][target["name"]]
        self.assertNotIn("replicas", deployment["spec"])  # applying it would undo the autoscaler's number
        [container] = deployment["spec"]["template"]["spec"]["containers"]
        for metric in scaler["spec"]["metrics"]:
            self.assertIn(metric["resource"]["name"], container["resources"]["requests"])  # what utilisation is relative to
        self.assertGreater(scaler["spec"]["minReplicas"], self.by_kind["PodDisruptionBudget"]["quern-serve"]["spec"]["minAvailable"])


FUNCTION_SUFFIX = re.compile(r"\b(quern_[a-z_]+)(\{[^}]*\})?")


class Metrics(Case):
    """Compares the metrics in expressions with those of a real server."""

    def known(self):
        with tempfile.TemporaryDirectory() as folder:
            options = []
            if "store" in options_of_server():
                key = pathlib.Path(folder, "key")
                key.write_text("ab" * 32 + "\n")
                key.chmod(0o600)
                options = ["--store", f"redis+unix:{folder}/no-redis", "--store-key", key]
            server = serving.Server("--workers", 1, *options).ready()
            server.compile(serving.KERNEL % 1)
            server.wait_for(lambda: b'path="/v1/compile"' in server.ask("GET", "/metrics").body)  # counted after it is answered
            text = server.ask("GET", "/metrics").body.decode()
            server.stop()
        known = {}
        for name, labels in re.findall(r"(?m)^(\w+)(?:\{(.*)\})? \S+$", text):
            for label, value in re.findall(r'(\w+)="([^"]*)"', labels):
                known.setdefault(name, {}).setdefault(label, set()).add(value)
            known.setdefault(name, {})
        return known

    def check_expressions(self, expressions, own=("job", "instance")):
        known = self.known()
        count = 0
        for expression in expressions:
            for name, matchers in FUNCTION_SUFFIX.findall(expression):
                count += 1
                self.assertIn(name, known, expression)
                for label, operator, value in re.findall(r'(\w+)(=~|!=|=)"([^"]*)"', matchers):
                    if label in own:
                        continue
                    self.assertIn(label, known[name], expression)
                    if label in ("tier", "result") or (label, operator) == ("path", "="):  # the server has all of these from its start
                        for each in value.split("|") if operator == "=~" else [value]:
                            self.assertIn(each, known[name][label], expression)
        return count


class Prometheus(Metrics):
    RULES = DEPLOY / "prometheus/quern.rules.yaml"

    def test_rules_are_valid_and_do_what_their_cases_say(self):
        for words in (("check", "rules", self.RULES), ("test", "rules", self.RULES.with_suffix(".test.yaml"))):
            done = run("promtool", *words, cwd=self.RULES.parent)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_every_alert_has_a_case(self):
        alerts = {rule["alert"] for group in yaml.safe_load(self.RULES.read_text())["groups"] for rule in group["rules"] if "alert" in rule}
        cases = yaml.safe_load(self.RULES.with_suffix(".test.yaml").read_text())["tests"]
        fired = {each["alertname"] for case in cases for each in case.get("alert_rule_test", []) if each["exp_alerts"]}
        self.assertEqual(alerts, fired)

    def test_every_metric_is_one_of_the_server(self):
        rules = [rule for group in yaml.safe_load(self.RULES.read_text())["groups"] for rule in group["rules"]]
        self.assertGreater(self.check_expressions(rule["expr"] for rule in rules), 14)
        recorded = {rule["record"] for rule in rules if "record" in rule}
        used = {name for rule in rules for name in re.findall(r"quern:[a-z_0-9:]+", rule["expr"])}
        self.assertLessEqual(used, recorded)


class Grafana(Metrics):
    def test_every_metric_is_one_of_the_server_and_panels_do_not_overlap(self):
        board = json.loads((DEPLOY / "grafana/quern.json").read_text())
        expressions = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
        expressions += [each["definition"] for each in board["templating"]["list"] if "definition" in each]
        self.assertGreater(self.check_expressions(expressions), 25)
        places = [panel["gridPos"] for panel in board["panels"]]
        taken = [(x, y) for each in places for x in range(each["x"], each["x"] + each["w"]) for y in range(each["y"], each["y"] + each["h"])]
        self.assertEqual(len(taken), len(set(taken)))
        self.assertLess(max(x for x, _ in taken), 24)
        self.assertEqual(len({panel["id"] for panel in board["panels"]}), len(board["panels"]))
        variables = {each["name"] for each in board["templating"]["list"]} | {"__rate_interval"}
        for expression in expressions:
            self.assertLessEqual(set(re.findall(r"\$(\w+)", expression)), variables)
        if shutil.which("promtool"):  # as rules, for the syntax
            rules = "".join(f"  - record: x:y\n    expr: {json.dumps(re.sub(r'[$][a-z_]+', '5m', each))}\n    labels: {{n: \"{i}\"}}\n"
                            for i, each in enumerate(expressions) if not each.startswith("label_values"))
            with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
                file.write("groups:\n- name: board\n  rules:\n" + rules)
                file.flush()
                done = run("promtool", "check", "rules", file.name)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


def missing(part):
    return [each for each in NEEDS[part] if (yaml is None if each == "yaml" else shutil.which(each) is None)]


if __name__ == "__main__":
    serving.PROGRAM = os.path.abspath(sys.argv.pop(1))
    if lacks := [each for part in sys.argv[1:2] if part in NEEDS for each in missing(part)]:
        print(f"not here: {', '.join(lacks)} (tools/setup --level deploy)")
        sys.exit(77)
    unittest.main()
