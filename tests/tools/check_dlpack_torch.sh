#!/bin/sh
# check_dlpack_torch.sh LIBRARY ROOT: tensors between PyTorch and the library. Needs Python with PyTorch (AOT_TORCH_PYTHON, else python3);
# without it the test is skipped: status 77.
library=$1; root=$2
python=${AOT_TORCH_PYTHON:-python3}
"$python" -c 'import torch' 2> /dev/null || { echo "skipped: $python has no PyTorch; AOT_TORCH_PYTHON names one that has"; exit 77; }
exec "$python" -W ignore "$root/tests/tools/dlpack_torch.py" "$library" "$root/tests/e2e/api.yaml" "$root/tests/fixtures/models/mlp/train.pt2"
