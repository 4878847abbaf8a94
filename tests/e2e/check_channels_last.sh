#!/bin/sh
# Convolution networks channels last: results are PyTorch's on all backends (tests/fixtures/channels_last, by networks.py), and
# what gains nothing is left alone.
. "$(dirname "$0")/lib.sh"
for folder in "$root"/tests/fixtures/channels_last/*/ "$models/resnet_tiny/" "$models/vit_tiny/"; do
  for on in backend-ref backend-cpu 'backend-cuda --set run.device=cuda'; do
    # shellcheck disable=SC2086
    status 0 "$aothost" verify "$root/pipelines/channels-last.yaml" --no-cache --model "${folder}train.pt2" \
      --expect "${folder}expected.safetensors" --set vars.backend=$on
    case $folder in
      */permuted/ | */vit_tiny/) says 'of patches.*channels-last.unchanged' ;;
      *) if grep -q 'channels-last.unchanged' out; then complain "$folder is left as it was"; fi ;;
    esac
  done
done
finish
