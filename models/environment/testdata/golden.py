"""Prints trajectories of the environments in the formulas of Gymnasium: golden.txt is its output.

A line is the name, the reward, 1 if the episode is over, and the state after the step. The first line of an environment
has its initial state. Actions repeat ACTIONS.
"""
from math import cos, pi, sin

START = [0.03, -0.02, 0.01, 0.04]
ACTIONS = {
    "cartpole": [1, 0, 0, 1, 1, 0, 1], "pendulum": [2, -1.5, 0.3, -2, 1],
    "acrobot": [0, 2, 2, 1, 0], "mountaincar": [1, 0.5, -1, -0.7],
}


def cartpole(s, action):
    x, x_dot, theta, theta_dot = s
    force = 10.0 if action == 1 else -10.0
    total_mass, polemass_length = 1.1, 0.05
    temp = (force + polemass_length * theta_dot**2 * sin(theta)) / total_mass
    thetaacc = (9.8 * sin(theta) - cos(theta) * temp) / (0.5 * (4.0 / 3.0 - 0.1 * cos(theta) ** 2 / total_mass))
    xacc = temp - polemass_length * thetaacc * cos(theta) / total_mass
    s = [x + 0.02 * x_dot, x_dot + 0.02 * xacc, theta + 0.02 * theta_dot, theta_dot + 0.02 * thetaacc]
    return s, 1.0, abs(s[0]) > 2.4 or abs(s[2]) > 12 * 2 * pi / 360


def pendulum(s, u):
    th, thdot = s[:2]
    g, m, l, dt = 10.0, 1.0, 1.0, 0.05
    costs = (((th + pi) % (2 * pi)) - pi) ** 2 + 0.1 * thdot**2 + 0.001 * (u**2)
    newthdot = thdot + (3 * g / (2 * l) * sin(th) + 3.0 / (m * l**2) * u) * dt
    newthdot = max(-8, min(8, newthdot))
    return [th + newthdot * dt, newthdot, 0, 0], -costs, False


def acrobot(s, action):
    def dsdt(y):
        theta1, theta2, dtheta1, dtheta2, a = y
        m1 = m2 = l1 = i1 = i2 = 1.0
        lc1 = lc2 = 0.5
        g = 9.8
        d1 = m1 * lc1**2 + m2 * (l1**2 + lc2**2 + 2 * l1 * lc2 * cos(theta2)) + i1 + i2
        d2 = m2 * (lc2**2 + l1 * lc2 * cos(theta2)) + i2
        phi2 = m2 * lc2 * g * cos(theta1 + theta2 - pi / 2.0)
        phi1 = (-m2 * l1 * lc2 * dtheta2**2 * sin(theta2) - 2 * m2 * l1 * lc2 * dtheta2 * dtheta1 * sin(theta2)
                + (m1 * lc1 + m2 * l1) * g * cos(theta1 - pi / 2) + phi2)
        ddtheta2 = (a + d2 / d1 * phi1 - m2 * l1 * lc2 * dtheta1**2 * sin(theta2) - phi2) / (m2 * lc2**2 + i2 - d2**2 / d1)
        ddtheta1 = -(d2 * ddtheta2 + phi1) / d1
        return [dtheta1, dtheta2, ddtheta1, ddtheta2, 0.0]

    y, dt = s + [action - 1.0], 0.2
    at = lambda k, t: [a + t * b for a, b in zip(y, k)]
    k1 = dsdt(y)
    k2 = dsdt(at(k1, dt / 2))
    k3 = dsdt(at(k2, dt / 2))
    k4 = dsdt(at(k3, dt))
    n = [a + dt / 6 * (p + 2 * q + 2 * r + t) for a, p, q, r, t in zip(y, k1, k2, k3, k4)][:4]
    for i in (0, 1):
        while n[i] > pi:
            n[i] -= 2 * pi
        while n[i] < -pi:
            n[i] += 2 * pi
    n[2] = max(-4 * pi, min(4 * pi, n[2]))
    n[3] = max(-9 * pi, min(9 * pi, n[3]))
    done = -cos(n[0]) - cos(n[1] + n[0]) > 1.0
    return n, 0.0 if done else -1.0, done


def mountaincar(s, action):
    position, velocity = s[:2]
    force = min(max(action, -1.0), 1.0)
    velocity += force * 0.0015 - 0.0025 * cos(3 * position)
    velocity = max(-0.07, min(0.07, velocity))
    position = max(-1.2, min(0.6, position + velocity))
    if position == -1.2 and velocity < 0:
        velocity = 0
    done = position >= 0.45 and velocity >= 0
    return [position, velocity, 0, 0], (100.0 if done else 0) - 0.1 * action**2, done


def pumps(s):  # reaches the goal
    return 1 if s[1] >= 0 else -1


for name, step, start, steps in [("cartpole", cartpole, START, 60), ("pendulum", pendulum, [2.5, -0.6, 0, 0], 60),
                                 ("acrobot", acrobot, START, 60), ("mountaincar", mountaincar, [-0.53, 0, 0, 0], 60)]:
    state = start
    print(name, 0, 0, *state)
    for i in range(steps):
        state, reward, done = step(state, ACTIONS[name][i % len(ACTIONS[name])])
        print(name, repr(reward), int(done), *map(repr, state))
        if done:
            break

state, done = [-0.53, 0, 0, 0], False
print("mountaincar-pumped", 0, 0, *state)
while not done:
    state, reward, done = mountaincar(state, pumps(state))
    print("mountaincar-pumped", repr(reward), int(done), *map(repr, state))
