"""transformers: GPT-2 of random weights generates text with a static cache, which is compiled and
run as CUDA graphs.
"""
import torch
import transformers
from report import report

torch.manual_seed(1)
config = transformers.GPT2Config(n_layer=4, n_embd=256, n_head=4, vocab_size=1000,
                                 bos_token_id=0, eos_token_id=0)
model = transformers.GPT2LMHeadModel(config).cuda().eval()
model.generation_config.cache_implementation = "static"
prompt = torch.randint(1, 1000, (1, 16), device="cuda")
tokens = None


def generate():
    global tokens
    tokens = model.generate(prompt, max_new_tokens=16, min_new_tokens=16, do_sample=False,
                            pad_token_id=0)


report("gpt2_static_cache", generate, torch.cuda.synchronize, samples=5, warm_up=3,
       result=lambda: tokens.sum())
