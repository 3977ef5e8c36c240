import numpy as np
import pandas as pd
import torch
from PIL import Image, ImageOps
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(1)
files = pd.read_csv("splits.csv")
pixels = np.stack([ImageOps.fit(Image.open(f).convert("L"), (32, 32), Image.BILINEAR) for f in files["file"]])
x = torch.tensor(pixels[:, None] / 255, dtype=torch.float32)
y = torch.tensor(files["file"].str.split("/").str[-2].astype("category").cat.codes.to_numpy(), dtype=torch.long)
train, test = (torch.tensor((files["split"] == name).to_numpy()) for name in ("train", "test"))
x = (x - x[train].mean()) / x[train].std()
model = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(),
    nn.MaxPool2d(2), nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
    nn.Linear(64 * 16, 64), nn.ReLU(), nn.Linear(64, 3))
optimiser, loss = torch.optim.Adam(model.parameters(), 1e-3), nn.CrossEntropyLoss()
for epoch in range(15):
    for a, b in DataLoader(TensorDataset(x[train], y[train]), 16, shuffle=True):
        flip = torch.rand(len(a), 1, 1, 1) < 0.5
        optimiser.zero_grad()
        loss(model(torch.where(flip, a.flip(3), a)), b).backward()
        optimiser.step()
with torch.no_grad():
    print("error", float((model(x[test]).argmax(1) != y[test]).float().mean()) * 100, "%")
