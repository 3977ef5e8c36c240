import pandas as pd
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(1)
table, split = pd.read_csv("houses.csv"), pd.read_csv("splits.csv")["split"].to_numpy()
table["lacking"] = table["rooms"].isna()
x = pd.get_dummies(table[["town", "area", "rooms", "built", "lacking"]]).astype(float)
x = ((x - x[split == "train"].mean()) / x[split == "train"].std()).fillna(0)
mean, deviation = table["price"][split == "train"].mean(), table["price"][split == "train"].std()
x, y = (torch.tensor(a.to_numpy(), dtype=torch.float32) for a in (x, (table[["price"]] - mean) / deviation))
train, validation, test = (torch.tensor(split == name) for name in ("train", "validation", "test"))
model = nn.Sequential(nn.Linear(x.shape[1], 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 1))
optimiser, loss = torch.optim.Adam(model.parameters(), 1e-3), nn.MSELoss()
best, since = float("inf"), 0
for epoch in range(200):
    for a, b in DataLoader(TensorDataset(x[train], y[train]), 64, shuffle=True):
        optimiser.zero_grad()
        loss(model(a), b).backward()
        optimiser.step()
    with torch.no_grad():
        now, error = (float(loss(model(x[part]), y[part])) for part in (validation, test))
    since += 1
    if now < best:
        best, since, rmse = now, 0, error**0.5 * deviation
    if since == 10:
        break
print("RMSE of the best epoch", rmse, "of the last", error**0.5 * deviation, "epochs", epoch + 1)
