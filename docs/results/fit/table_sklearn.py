import time

import pandas as pd
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.impute import SimpleImputer
from sklearn.metrics import mean_squared_error
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

table, split = pd.read_csv("houses.csv"), pd.read_csv("splits.csv")["split"].to_numpy()
train, test = table[split != "test"], table[split == "test"]
columns = make_column_transformer(
    (OneHotEncoder(handle_unknown="ignore"), ["town"]),
    (make_pipeline(SimpleImputer(add_indicator=True), StandardScaler()), ["area", "rooms", "built"]),
    sparse_threshold=0)
network = MLPRegressor((128, 64), early_stopping=True, random_state=1)
perceptron = TransformedTargetRegressor(network, transformer=StandardScaler())
for model in (perceptron, HistGradientBoostingRegressor(random_state=1)):
    start = time.time()
    fit = make_pipeline(columns, model).fit(train, train["price"])
    error = mean_squared_error(test["price"], fit.predict(test), squared=False)
    print(type(model).__name__, "RMSE", error, "seconds", time.time() - start)
