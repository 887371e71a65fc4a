"""Lists how it can compute."""

import onnxruntime

assert "CPUExecutionProvider" in onnxruntime.get_available_providers()
