// SPDX-License-Identifier: Apache-2.0
// Section A, rows 5 and 6: arrays of other libraries.
#include "suite.hpp"

using namespace quern;
using namespace quern::contract;

namespace {

/// An array of another library, which does not know quern's types.
struct Foreign {
  CudaArrayInterface description;
  std::shared_ptr<int> alive = std::make_shared<int>(1);
  CudaArrayInterface cuda_array_interface() const { return description; }
};

/// An array that supports DLPack. Its values are produced on `producer`.
struct Producer {
  DeviceNDArray array;
  StreamView producer;
  std::shared_ptr<std::vector<std::optional<StreamView>>> asked =
      std::make_shared<std::vector<std::optional<StreamView>>>();
  dlpack::ManagedTensorVersioned* to_dlpack(std::optional<StreamView> consumer) const {
    asked->push_back(consumer);
    return quern::to_dlpack(array, {.producer = producer, .consumer = consumer});
  }
};

/// A program's own tensor in memory of quern. It counts the calls of its deleter.
struct OwnTensor {
  static inline int deleted = 0;
  std::int64_t shape[1] = {6};
  dlpack::ManagedTensorVersioned managed;
  OwnTensor(void* data, dlpack::DeviceType device) {
    managed.tensor.data = data;
    managed.tensor.device = {device, 0};
    managed.tensor.ndim = 1;
    managed.tensor.shape = shape;
    managed.deleter = [](dlpack::ManagedTensorVersioned*) { ++deleted; };
  }
};

NDArray filled(float value) {
  const NDArray array({6}, Dtype::float32);
  array.assign(value);
  return array;
}

/// Keeps `stream` busy and then sets all elements.
void set_later(const DeviceNDArray& array, float value, StreamView stream) {
  keep_busy(stream);
  array.assign(value, stream);
}

void copies_in_this_library() {
  const DeviceNDArray a = shared().to_device(counting_array({6}));
  const DeviceNDArray b = shared().device_array({6}, Dtype::float32);
  const std::uint64_t to_device = calls_of("cuMemcpyHtoD_v2");
  const std::uint64_t on_device = calls_of("cuMemcpyDtoD_v2");
  b.copy_to_device(a);
  CHECK(calls_of("cuMemcpyDtoD_v2") == on_device + 1);
  CHECK(calls_of("cuMemcpyHtoD_v2") == to_device);
  CHECK(b.copy_to_host().identical(counting_array({6})));
  b.copy_to_device(NDArray::of({6.f, 5.f, 4.f, 3.f, 2.f, 1.f}));
  CHECK(b.copy_to_host().at<float>(0) == 6);
  b(Slice{0, 6, 2}).copy_to_device(a(Slice{3, 6}));  // strided to dense, on the device
  CHECK(b.copy_to_host().identical(NDArray::of({3.f, 5.f, 4.f, 3.f, 5.f, 1.f})));
  b(Slice{1, 6}).copy_to_device(b(Slice{0, 5}));  // overlapping
  CHECK(b.copy_to_host().identical(NDArray::of({3.f, 3.f, 5.f, 4.f, 3.f, 5.f})));

  const MappedNDArray mapped = shared().mapped_array({6}, Dtype::float32);
  mapped.copy_to_device(a);
  CHECK(mapped.host().at<float>(5) == 5);
  const DeviceRecord record = shared().to_device(Point{1, 2});
  record.copy_to_device(NDArray::scalar(Point{8, 9}));
  CHECK(record.get<Point>().x == 8);
  const Stream stream = shared().stream();
  b.copy_to_device(NDArray::of({1.f, 1.f, 1.f, 1.f, 1.f, 1.f}), stream);
  a.copy_to_device(b, stream);
  stream.synchronize();
  CHECK(a.copy_to_host().at<float>(5) == 1);
  CHECK(holds(message([&] { a.copy_to_device(shared().device_array({7}, Dtype::float32)); }), "(7,)"));
}

void copies_from_the_cuda_array_interface() {
  const DeferredCleanup nothing_released = shared().defer_cleanup();  // releasing memory waits for its work
  const DeviceNDArray theirs = shared().to_device(counting_array({6}));
  const DeviceNDArray mine = shared().device_array({6}, Dtype::float32);
  const std::uint64_t to_device = calls_of("cuMemcpyHtoD_v2");
  mine.copy_to_device(Foreign{theirs.cuda_array_interface()});
  CHECK(calls_of("cuMemcpyHtoD_v2") == to_device);
  CHECK(mine.copy_to_host().identical(counting_array({6})));
  mine(Slice{{}, {}, -1}).copy_to_device(Foreign{theirs.cuda_array_interface()});
  CHECK(mine.copy_to_host().at<float>(0) == 5);
  shared().mapped_array({6}, Dtype::float32).copy_to_device(Foreign{theirs.cuda_array_interface()});
  const DeviceRecord point = shared().to_device(Point{3, 4}), other = shared().to_device(Point{});
  other.copy_to_device(Foreign{point.cuda_array_interface()});
  CHECK(other.get<Point>().y == 4);

  const StreamView producer = foreign_stream(), consumer = foreign_stream();
  set_later(theirs, 7, producer);
  auto foreign = std::make_shared<Foreign>(Foreign{theirs.cuda_array_interface(producer)});
  const std::weak_ptr<int> alive = foreign->alive;
  mine.copy_to_device(std::move(foreign), consumer);
  CHECK_FALSE(producer.query());  // queued behind it, not waited for
  CHECK_FALSE(alive.expired());
  consumer.synchronize();
  CHECK(alive.expired());
  CHECK(mine.copy_to_host().identical(filled(7)));
  set_later(theirs, 8, producer);
  mine.copy_to_device(Foreign{theirs.cuda_array_interface(producer)});
  CHECK(producer.query());
  CHECK(mine.copy_to_host().identical(filled(8)));
  Foreign wrong{shared().device_array({7}, Dtype::float32).cuda_array_interface()};
  CHECK(holds(message([&] { mine.copy_to_device(wrong); }), "(7,)"));
  CHECK(holds(message([&] { mine.copy_to_device(wrong, consumer); }), "(7,)"));
}

void copies_from_dlpack() {
  const DeferredCleanup nothing_released = shared().defer_cleanup();  // releasing memory waits for its work
  const DeviceNDArray theirs = shared().to_device(counting_array({6}));
  const DeviceNDArray mine = shared().device_array({6}, Dtype::float32);
  const std::uint64_t to_device = calls_of("cuMemcpyHtoD_v2");
  mine.copy_to_device(to_dlpack(theirs));
  CHECK(mine.copy_to_host().identical(counting_array({6})));
  mine.copy_to_device(to_dlpack_unversioned(theirs(Slice{{}, {}, -1})));
  CHECK(mine.copy_to_host().at<float>(0) == 5);
  CHECK(calls_of("cuMemcpyHtoD_v2") == to_device);
  mine.copy_to_device(to_dlpack(filled(2)));  // of the host's memory
  CHECK(calls_of("cuMemcpyHtoD_v2") == to_device + 1);
  CHECK(mine.copy_to_host().identical(filled(2)));

  const StreamView producer = foreign_stream(), consumer = foreign_stream();
  const Producer object{theirs, producer};
  set_later(theirs, 7, producer);
  mine.copy_to_device(object, consumer);
  CHECK(object.asked->back()->handle() == consumer.handle());
  CHECK_FALSE(producer.query());
  consumer.synchronize();
  CHECK(mine.copy_to_host().identical(filled(7)));
  set_later(theirs, 8, producer);
  mine.copy_to_device(object);
  CHECK(object.asked->back()->handle() == nullptr);
  CHECK(mine.copy_to_host().identical(filled(8)));

  OwnTensor own(theirs.data(), dlpack::DeviceType::cuda);
  OwnTensor::deleted = 0;
  set_later(theirs, 9, producer);
  mine.copy_to_device(from_dlpack(shared(), &own.managed, {.producer = producer, .consumer = consumer}),
                      consumer);
  CHECK(OwnTensor::deleted == 0);  // the copy has not run
  consumer.synchronize();
  CHECK(OwnTensor::deleted == 1);
  CHECK(mine.copy_to_host().identical(filled(9)));
  CHECK(holds(message([&] { shared().device_array({7}, Dtype::float32).copy_to_device(&own.managed); }),
              "(7,)"));
  CHECK(OwnTensor::deleted == 2);
  CHECK(holds(message([&] { DeviceNDArray().copy_to_device(&own.managed); }), "default-constructed"));
  CHECK(OwnTensor::deleted == 3);
  own.managed.version.major = 2;
  CHECK(holds(message([&] { mine.copy_to_device(&own.managed); }), "version 2.3"));
  CHECK(OwnTensor::deleted == 4);
}

void views_by_the_cuda_array_interface() {
  const DeferredCleanup nothing_released = shared().defer_cleanup();  // releasing memory waits for its work
  const DeviceNDArray base = shared().to_device(counting_array({4, 6}));
  CHECK(is_cuda_array(base));
  CHECK(is_cuda_array(Foreign{}));
  CHECK_FALSE(is_cuda_array(std::vector<int>{}));
  CHECK_FALSE(is_cuda_array(counting_array({3})));

  auto foreign = std::make_shared<Foreign>(Foreign{base(Slice{}, Slice{{}, {}, -2}).cuda_array_interface()});
  const std::weak_ptr<int> alive = foreign->alive;
  DeviceNDArray view = shared().as_cuda_array(foreign);
  foreign.reset();
  CHECK_FALSE(alive.expired());
  CHECK(view.data() == static_cast<std::byte*>(base.data()) + 20);
  CHECK(view.copy_to_host().identical(counting_array({4, 6})(Slice{}, Slice{{}, {}, -2}).copy()));
  view.assign(0.0f);
  CHECK(base.copy_to_host().at<float>(2, 5) == 0);
  view = {};
  CHECK(alive.expired());

  const Stream producer = shared().stream();
  keep_busy(producer);
  base.assign(3.0f, producer);
  CHECK(shared().as_cuda_array(Foreign{base.cuda_array_interface(producer)}).copy_to_host().at<float>(0, 0) ==
        3);
  CHECK(producer.query());
  keep_busy(producer);
  (void)shared().as_cuda_array(Foreign{base.cuda_array_interface(producer)}, false);
  CHECK_FALSE(producer.query());
  producer.synchronize();
  const DeviceRecord point = shared().to_device(Point{1, 2});
  CHECK(shared().as_cuda_array(Foreign{point.cuda_array_interface()}).item<Point>().y == 2);
}

void refusals_of_the_cuda_array_interface() {
  const DeviceNDArray base = shared().to_device(counting_array({4, 6}));
  Foreign read_only{base.cuda_array_interface()};
  read_only.description.read_only = true;
  const DeviceNDArray locked = shared().as_cuda_array(read_only);
  CHECK(holds(message([&] { locked.assign(1.0f); }), "read-only"));
  CHECK(holds(message([&] { kernel("scale")({.block = 1})(locked, 2.0f); }), "read-only"));
  // Neither the memory of the array nor PTX, which does not declare the parameters that a kernel writes to,
  // circumvents that.
  const std::vector<std::byte> bytes(96);
  const Stream stream = shared().stream();
  CHECK(holds(message([&] { locked.buffer().fill(std::byte{0}); }), "read-only"));
  CHECK(holds(message([&] { locked.buffer().fill(std::byte{0}, stream); }), "read-only"));
  CHECK(holds(message([&] { locked.buffer().copy_from_host(bytes); }), "read-only"));
  CHECK(holds(message([&] { locked.buffer().copy_from_host(bytes, 0, stream); }), "read-only"));
  CHECK(holds(message([&] { locked.buffer().copy_from(base.buffer()); }), "read-only"));
  CHECK(holds(message([&] { locked.buffer().copy_from(base.buffer(), stream); }), "read-only"));
  const Module ptx = shared().load_ptx(R"(.version 6.0
.target sm_50
.address_size 64
.visible .entry address(.param .u64 x) { ret; }
.visible .entry array(.param .align 8 .b8 x[40]) { ret; })");
  for (const char* name : {"address", "array"})
    CHECK(holds(message([&] { ptx.kernel(name)({.block = 1})(locked); }), "it is read-only"));
  CHECK(message([&] { ptx.kernel("address")({.block = 1})(locked.data()); }) == "");
  CHECK(message([&] { ptx.kernel("array")({.block = 1})(base); }) == "");
  CHECK(base.copy_to_host().identical(counting_array({4, 6})));
  Foreign broken = read_only;
  broken.description.mask = &broken;
  CHECK(holds(message([&] { (void)shared().as_cuda_array(broken); }), "masked"));
  broken.description.mask = nullptr;
  broken.description.typestr = ">f4";
  CHECK(holds(message([&] { (void)shared().as_cuda_array(broken); }), "'>f4'"));
  broken.description.typestr = "<f4";
  broken.description.stream = 0;
  CHECK(holds(message([&] { (void)shared().as_cuda_array(broken); }), "stream is 0"));
  int on_host = 0;
  broken.description = {{1}, "<i4", &on_host};
  CHECK(holds(message([&] { (void)shared().as_cuda_array(broken); }), "does not know its address"));
}

void views_by_dlpack() {
  DeviceNDArray base = shared().to_device(counting_array({4, 6}));
  const DeviceNDArray part = base(Slice{1, 3}, Slice{{}, {}, -2});
  OwnTensor::deleted = 0;
  OwnTensor own(base.data(), dlpack::DeviceType::cuda);
  DeviceNDArray view = from_dlpack(shared(), &own.managed);
  DeviceNDArray second = view(Slice{2, 4});
  view = {};
  CHECK(OwnTensor::deleted == 0);
  CHECK(second.copy_to_host().identical(NDArray::of({2.f, 3.f})));
  second = {};
  CHECK(OwnTensor::deleted == 1);
  own.managed.flags = dlpack::kReadOnly;
  const DeviceNDArray locked = from_dlpack(shared(), &own.managed);
  CHECK(holds(message([&] { locked.assign(1.0f); }), "read-only"));

  dlpack::ManagedTensorVersioned* const out = to_dlpack(part);
  base = {};
  CHECK(from_dlpack(shared(), out)
            .copy_to_host()
            .identical(counting_array({4, 6})(Slice{1, 3}, Slice{{}, {}, -2}).copy()));
  CHECK(from_dlpack(shared(), Producer{part, {}}).data() == part.data());
}

/// An array exported by DLPack is ready on the consumer's stream; quern never waits on the host.
void dlpack_is_ordered_on_the_way_out() {
  const DeferredCleanup nothing_released = shared().defer_cleanup();  // releasing memory waits for its work
  const DeviceNDArray array = shared().to_device(counting_array({6}));
  const StreamView producer = foreign_stream(), consumer = foreign_stream(), bystander = foreign_stream();
  set_later(array, 7, producer);
  REQUIRE(consumer.query());
  dlpack::ManagedTensorVersioned* tensor = to_dlpack(array, {.producer = producer, .consumer = consumer});
  CHECK_FALSE(producer.query());
  CHECK_FALSE(consumer.query());
  CHECK(bystander.query());
  const NDArray there = from_dlpack(shared(), tensor).copy_to_host(consumer);
  consumer.synchronize();
  CHECK(there.identical(filled(7)));

  set_later(array, 8, producer);
  tensor = to_dlpack(array, {.producer = producer, .consumer = dlpack_consumer(-1)});
  CHECK(consumer.query());  // no order was requested, so none was established
  tensor->deleter(tensor);
  producer.synchronize();

  const Stream ours = shared().stream();  // it has the handle of the default stream
  set_later(array, 9, ours);
  tensor = to_dlpack(array, {.consumer = dlpack_consumer(dlpack_stream(consumer))});
  CHECK_FALSE(consumer.query());
  const NDArray last = from_dlpack(shared(), tensor).copy_to_host(consumer);
  consumer.synchronize();
  CHECK(last.identical(filled(9)));
}

void dlpack_is_ordered_on_the_way_in() {
  const DeferredCleanup nothing_released = shared().defer_cleanup();  // releasing memory waits for its work
  const DeviceNDArray array = shared().to_device(counting_array({6}));
  const StreamView producer = foreign_stream(), consumer = foreign_stream();
  OwnTensor own(array.data(), dlpack::DeviceType::cuda);
  set_later(array, 7, producer);
  const DeviceNDArray queued =
      from_dlpack(shared(), &own.managed, {.producer = producer, .consumer = consumer});
  CHECK_FALSE(producer.query());
  const NDArray there = queued.copy_to_host(consumer);
  consumer.synchronize();
  CHECK(there.identical(filled(7)));
  set_later(array, 8, producer);
  const DeviceNDArray waited = from_dlpack(shared(), &own.managed, {.producer = producer});
  CHECK(producer.query());
  CHECK(waited.copy_to_host().identical(filled(8)));
  set_later(array, 9, producer);
  const DeviceNDArray offered = from_dlpack(shared(), Producer{array, producer}, consumer);
  CHECK_FALSE(producer.query());
  const NDArray last = offered.copy_to_host(consumer);
  consumer.synchronize();
  CHECK(last.identical(filled(9)));
}

/// Every driver call of the operation fails once. Then an error is reported, and nothing of the producer is
/// kept.
void failing_calls_give_everything_back() {
  const OwnSession session;
  const DeviceNDArray theirs = session.to_device(counting_array({6}));
  const DeviceNDArray mine = session.device_array({6}, Dtype::float32);
  const Stream producer = session.stream(), consumer = session.stream();
  const Foreign foreign{theirs.cuda_array_interface(producer)};
  OwnTensor own(theirs.data(), dlpack::DeviceType::cuda);
  const FromDlpack ordered = {.producer = producer, .consumer = consumer};
  const std::function<void()> actions[] = {
      [&] { mine.copy_to_device(foreign, consumer); },
      [&] { mine.copy_to_device(foreign); },
      [&] { mine.copy_to_device(Producer{theirs, producer}, consumer); },
      [&] { mine.copy_to_device(&own.managed, consumer); },
      [&] { mine.copy_to_device(from_dlpack(session, &own.managed, ordered), consumer); },
      [&] { (void)from_dlpack(session, &own.managed, {.producer = producer}); },
  };
  for (const std::function<void()>& action : actions) {
    const int takes_own = &action - actions >= 3 ? 1 : 0;
    for (std::uint64_t nth = 1; nth < 100; ++nth) {
      const long keepers = theirs.buffer().state().use_count();
      OwnTensor::deleted = 0;
      const std::uint64_t before = calls().call_count();
      calls().fail_call(nth, CUDA_ERROR_NOT_SUPPORTED);
      const std::string text = message(action);
      const bool failed = calls().call_count() >= before + nth;
      calls().clear_failures();
      consumer.synchronize();
      CAPTURE(nth);
      CHECK(foreign.alive.use_count() == 1);
      CHECK(OwnTensor::deleted == takes_own);
      CHECK(theirs.buffer().state().use_count() == keepers);
      if (failed) continue;
      CHECK(text.empty());
      CHECK(mine.copy_to_host().identical(counting_array({6})));
      break;
    }
  }
}

}  // namespace

TEST_CASE(
    "A5: copy_to_device copies on the device from any library's array there, after its producer's work, else "
    "from the host") {
  copies_in_this_library();
  copies_from_the_cuda_array_interface();
  copies_from_dlpack();
  failing_calls_give_everything_back();
}

TEST_CASE(
    "A6: arrays come and go by the CUDA Array Interface and DLPack as views, kept alive, after their "
    "producer's work") {
  views_by_the_cuda_array_interface();
  refusals_of_the_cuda_array_interface();
  views_by_dlpack();
  dlpack_is_ordered_on_the_way_out();
  dlpack_is_ordered_on_the_way_in();
}
