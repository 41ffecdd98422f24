"""The choices of the studies where the paper leaves a setting open.

Each study lists its own. The page, every manifest and `docs/how-to/choices.md` show them, so that
our choices are not mistaken for the paper's.
"""

from keyhole.lab.studies.study import Choice

HORIZON = Choice("Horizon", "not said", "10,000 rounds")
DISTRIBUTIONS = Choice(
    "Distributions of contexts and noises",
    "mean zero and sub-Gaussian; distribution and covariance are not said",
    "x, the sensing noise and the reward noise are normal with covariance I, independent of each "
    "other",
)
PARAMETERS = Choice(
    "Distributions of mu and A",
    "not said",
    "entries of mu_i and A are independent standard normals",
)
DISPERSION = Choice(
    "Dispersion v",
    "any v with v^2 >= R^2",
    "v = R of the instance, given to the policy",
)
OWN_CONTEXTS = Choice(
    "One context or one for each arm",
    "contexts independent across arms in section 2; not said of this figure",
    "a context for each arm",
)
NEW_INSTANCES = Choice(
    "Instances",
    "50 scenarios; whether they share mu and A is not said",
    "mu and A are drawn anew in each replication",
)
REPLICATIONS_FIG2 = Choice(
    "Replications",
    "50 for figure 1; not said of figure 2",
    "200: with 50 the rate of one arm is known to 0.06 only, more than the margin",
)
ONE_INSTANCE = Choice(
    "Instances",
    "not said",
    "one instance for each pair of dimensions, so that an arm is the same in every replication",
)
DIMENSIONS_FIG3 = Choice("Dimensions of figure 3", "not said", "d_x = d_y = 10")
BOTH_CONTEXTS = Choice(
    "One context or one for each arm",
    "contexts independent across arms in section 2; not said of this figure",
    "both: a context for each arm, and one context for all",
)
REPLICATIONS_FIG3 = Choice(
    "Replications and worst case",
    "worst of 50 for figure 1; not said of figure 3",
    "200, of which the expected worst of 50 is computed: one worst of 50 has no interval",
)
GREEDY = Choice(
    "Greedy",
    "not defined",
    "the arm with the largest y'mean of the same posterior; ties are broken at random",
)
PATIENTS = Choice(
    "Order of patients",
    "a patient randomly chosen at each time",
    "rows drawn uniformly with replacement",
)
PREPROCESSING = Choice(
    "Preprocessing",
    "26 and 14 features; nothing else is said",
    "the row number lineNo is dropped from eye movements; features are clipped at their 0.5% and "
    "99.5% quantiles and standardised",
)
SENSING = Choice(
    "Sensing of real data",
    "A of zeros and ones with 13 and 10 rows; its distribution and the noise are not said",
    "entries 0 or 1 with probability 1/2, drawn anew in each replication; normal noise of standard "
    "deviation 0.1",
)
REWARDS = Choice(
    "Rewards of real data",
    "log odds linear in x, with artificial noises; their scale is not said",
    "mu_i from a logistic regression of class i against the rest (L2 penalty, C = 1); normal noise "
    "of standard deviation 1. 0/1 rewards have no noise of their own",
)
CONSTANT = Choice(
    "Constants",
    "the model has none; not said of the regressions",
    "none in rewards, policy and oracle; the logistic regression has one, which rewards leave out. "
    "The study variants adds one",
)
ORACLE = Choice(
    "Regression oracle",
    "trained on the entire data in hindsight; on what is not said",
    "least squares of the rewards on y over all rows, the sensing noise averaged over; its eta is "
    "the truth of regret",
)
NO_FIGURE = Choice("The study", "no such figure", "all of it is ours")
EARLIER = Choice(
    "The earlier paper's figures",
    "N, d, covariances I, 5,000 and 8,000 rounds; we do not have its other settings",
    "entries of mu and A are independent standard normals, drawn anew in each replication; v = 1",
)

SYNTHETIC = (HORIZON, DISTRIBUTIONS, PARAMETERS, DISPERSION)
FIGURE_1 = (*SYNTHETIC, OWN_CONTEXTS, NEW_INSTANCES)
FIGURE_2 = (*SYNTHETIC, OWN_CONTEXTS, ONE_INSTANCE, REPLICATIONS_FIG2)
FIGURE_3 = (*SYNTHETIC, DIMENSIONS_FIG3, BOTH_CONTEXTS, NEW_INSTANCES, REPLICATIONS_FIG3, GREEDY)
REAL = (HORIZON, PATIENTS, PREPROCESSING, SENSING, REWARDS, CONSTANT, ORACLE, DISPERSION)
OURS = (NO_FIGURE,)
PARK_2021 = (EARLIER,)
