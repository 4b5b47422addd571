"""PyTorch and torchvision: ResNet-18 trained with mixed precision."""
import torch
import torchvision
from report import report

torch.manual_seed(1)
model = torchvision.models.resnet18(num_classes=10).cuda().to(memory_format=torch.channels_last)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
images = torch.randn(16, 3, 128, 128, device="cuda").to(memory_format=torch.channels_last)
labels = torch.randint(10, (16,), device="cuda")
losses = []


def step():
    optimizer.zero_grad()
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = torch.nn.functional.cross_entropy(model(images), labels)
    loss.backward()
    optimizer.step()
    losses.append(loss.detach())


report("torch_resnet", step, torch.cuda.synchronize, samples=20, warm_up=5,
       result=lambda: losses[0])
