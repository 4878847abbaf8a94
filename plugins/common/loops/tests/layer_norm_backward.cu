; not for GPUs
