import wandb
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

run = wandb.init(config={"C": 1.0})
x, y = load_iris(return_X_y=True)
x_train, x_test, y_train, y_test = train_test_split(x, y, random_state=0)
model = LogisticRegression(C=1.0, max_iter=500).fit(x_train, y_train)
wandb.sklearn.plot_classifier(
    model, x_train, x_test, y_train, y_test, model.predict(x_test), model.predict_proba(x_test),
    ["setosa", "versicolor", "virginica"], model_name="logistic",
)  # fmt: skip
run.log({"accuracy": model.score(x_test, y_test)})
run.finish()
