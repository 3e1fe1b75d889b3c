"""Coefficients for a machine that was never measured. Only their proportions matter, and those roughly."""

from __future__ import annotations

from ninfer.config.model_config import ModelConfig
from ninfer.economics.machine_cost import MachineCost
from ninfer.economics.model_work import model_work
from ninfer.economics.prefill_cost import PrefillCost
from ninfer.economics.transfer_cost import TransferCost

# One core with 256-bit vectors in a prefill, and one copying in memory.
_FLOPS_PER_NS = 40.0
_COPY = TransferCost(batch_ns=20_000.0, operation_ns=1_000.0, ns_per_byte=0.2)
_PASS_NS = 500_000.0


def generic_cost(config: ModelConfig, threads: int) -> MachineCost:
    work = model_work(config)
    rate = _FLOPS_PER_NS * threads
    prefill = PrefillCost(_PASS_NS, work.token_flops / rate, work.pair_flops / rate)
    return MachineCost(_COPY, _COPY, _COPY, prefill)
