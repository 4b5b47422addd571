"""JAX: compiled functions, gradients and vectorized maps."""
import os

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import jax
import jax.numpy as jnp
from report import report

matrix = jax.random.normal(jax.random.key(1), (1024, 1024))
batch = jax.random.normal(jax.random.key(2), (64, 1024))


def loss(x):
    return jnp.mean(jnp.tanh(x @ x.T) ** 2)


functions = {"jit": (jax.jit(loss), matrix),
             "grad": (jax.jit(jax.grad(loss)), matrix),
             "vmap": (jax.jit(jax.vmap(lambda row: jnp.sum(jnp.tanh(matrix @ row)))), batch)}
output = None

for name, (function, argument) in functions.items():
    def step():
        global output
        output = function(argument).block_until_ready()

    report(f"jax_{name}", step, lambda: None, samples=20, result=lambda: jnp.sum(output))
