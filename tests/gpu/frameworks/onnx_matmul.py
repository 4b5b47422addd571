"""ONNX Runtime: a product of matrices by its CUDA provider, if it has one."""
import numpy
import onnx
import onnxruntime
from report import report

if "CUDAExecutionProvider" not in onnxruntime.get_available_providers():
    print("left_out=onnx_matmul because=this_ONNX_Runtime_has_no_CUDA_provider")
    raise SystemExit(0)

shape = [512, 512]
value = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape) for name in "abc"]
graph = onnx.helper.make_graph([onnx.helper.make_node("MatMul", ["a", "b"], ["c"])], "product",
                               value[:2], value[2:])
model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)])
session = onnxruntime.InferenceSession(model.SerializeToString(),
                                       providers=["CUDAExecutionProvider"])
left, right = (numpy.random.RandomState(seed).rand(*shape).astype("float32") for seed in (1, 2))
output = None


def step():
    global output
    (output,) = session.run(None, {"a": left, "b": right})


report("onnx_matmul", step, lambda: None, result=lambda: output.sum())
