"""PyTorch: a transformer trained, and attention in bfloat16."""
import torch
from report import report

torch.manual_seed(1)
layer = torch.nn.TransformerEncoderLayer(512, 8, 2048, dropout=0.0, batch_first=True)
model = torch.nn.TransformerEncoder(layer, 4).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
tokens = torch.randn(8, 128, 512, device="cuda")
losses = []


def step():
    optimizer.zero_grad(set_to_none=True)
    loss = model(tokens).square().mean()
    loss.backward()
    optimizer.step()
    losses.append(loss.detach())


report("torch_transformer", step, torch.cuda.synchronize, samples=20, warm_up=5,
       result=lambda: losses[-1])

query, key, value = (torch.randn(4, 16, 1024, 64, device="cuda", dtype=torch.bfloat16)
                     for _ in range(3))
output = None


def attend():
    global output
    output = torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)


report("torch_attention", attend, torch.cuda.synchronize, samples=20,
       result=lambda: output.float().square().mean())
