/*
 * The Black-Scholes price of European options, a call and a put for each: one kernel,
 * nothing to wait for. The riskless rate changes with the iteration, so that the result
 * tells which one was the last. The distribution function of the normal distribution is
 * Abramowitz and Stegun's 26.2.17 on the device and erfc() on the processor.
 */
#include "workload.h"

#include <algorithm>
#include <vector>

#define BLOCK	   256
#define SAMPLES	   (1 << 20)
#define DISTINCT   (1 << 20)
#define VOLATILITY 0.3f

struct contract {
	float spot, strike, years;
};

struct price {
	float call, put;
};

static float rate_of(long depth)
{
	return 0.02f + 1e-3f * (float)depth;
}

/* The probability that a normal variable is less than @d; off by less than 7.5e-8. */
__device__ static float normal_below(float d)
{
	float t = 1 / (1 + 0.2316419f * fabsf(d));
	float polynomial =
		t *
		(0.319381530f +
		 t * (-0.356563782f + t * (1.781477937f + t * (-1.821255978f + t * 1.330274429f))));
	float above = 0.398942280f * expf(-0.5f * d * d) * polynomial;

	return d > 0 ? 1 - above : above;
}

__global__ void evaluate(struct price *prices, const struct contract *contracts, size_t amount,
			 float rate, unsigned long long *count)
{
	size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;

	workload_count(count);
	if (i >= amount)
		return;

	struct contract o = contracts[i];
	float deviation = VOLATILITY * sqrtf(o.years);
	float d1 = (logf(o.spot / o.strike) + (rate + 0.5f * VOLATILITY * VOLATILITY) * o.years) /
		   deviation;
	float below1 = normal_below(d1), below2 = normal_below(d1 - deviation);
	float discounted = o.strike * expf(-rate * o.years);

	prices[i].call = o.spot * below1 - discounted * below2;
	prices[i].put = discounted * (1 - below2) - o.spot * (1 - below1);
}

struct blackscholes : workload {
	std::vector<struct contract> contracts;
	struct contract *device_contracts;
	struct price *device_prices;

	double units() const override
	{
		return (double)size;
	}

	/* Beyond the first DISTINCT contracts, they repeat: random numbers take time. */
	void allocate() override
	{
		std::vector<float> random(3 * std::min<size_t>(size, DISTINCT));

		workload_fill(random.data(), random.size(), 0, 1, 1);
		contracts.resize(size);
		for (size_t i = 0; i < contracts.size(); i++) {
			const float *numbers = &random[i % DISTINCT * 3];

			contracts[i] = {5 + 25 * numbers[0], 1 + 99 * numbers[1],
					0.25f + 9.75f * numbers[2]};
		}
		CUDA(this, cudaMalloc(&device_contracts, size * sizeof(*device_contracts)));
		CUDA(this, cudaMalloc(&device_prices, size * sizeof(*device_prices)));
	}

	void load() override
	{
		CUDA(this, cudaMemcpy(device_contracts, contracts.data(),
				      size * sizeof(*device_contracts), cudaMemcpyHostToDevice));
		CUDA(this,
		     cudaMemset(device_prices, WORKLOAD_POISON, size * sizeof(*device_prices)));
	}

	void step(long i) override
	{
		unsigned blocks = (unsigned)((size + BLOCK - 1) / BLOCK);

		evaluate<<<blocks, BLOCK, 0, stream>>>(device_prices, device_contracts,
						       (size_t)size, rate_of(i % round + 1), count);
		workload_cuda(this, cudaGetLastError(), "launch of evaluate");
	}

	/*
	 * A price is a difference of two terms, each as large as spot or strike, and each off
	 * by a few units in the last place and by the approximation.
	 */
	bool verify_option(const struct price &price, size_t index) const
	{
		const struct contract &o = contracts[index];
		double rate = rate_of(workload_depth(this)), deviation = VOLATILITY * sqrt(o.years);
		double d1 = log((double)o.spot / o.strike) / deviation +
			    (rate + 0.5 * VOLATILITY * VOLATILITY) * o.years / deviation;
		double above1 = erfc(d1 / M_SQRT2) / 2,
		       above2 = erfc((d1 - deviation) / M_SQRT2) / 2;
		double discounted = o.strike * exp(-rate * o.years);
		double tolerance = 1e-6 * ((double)o.spot + o.strike);

		return workload_close(this, price.call,
				      o.spot * (1 - above1) - discounted * (1 - above2), tolerance,
				      2 * index) &&
		       workload_close(this, price.put, discounted * above2 - o.spot * above1,
				      tolerance, 2 * index + 1);
	}

	bool verify() override
	{
		std::vector<struct price> prices(size);
		uint64_t dice = 2;

		workload_fetch(this, prices, device_prices);
		if (!workload_all_written(this, &prices[0].call, 2 * prices.size()))
			return false;
		for (size_t i = 0; i < prices.size() && i < SAMPLES; i++) {
			size_t index = workload_sample(i, SAMPLES, prices.size(), &dice);

			if (!verify_option(prices[index], index))
				return false;
		}
		return true;
	}

	void release() override
	{
		CUDA(this, cudaFree(device_contracts));
		CUDA(this, cudaFree(device_prices));
	}
};

int main(int argc, char **argv)
{
	struct blackscholes w = {};

	w.name = "blackscholes";
	w.about = "Prices European options by the formula of Black and Scholes and checks them.";
	w.size_about = "options";
	w.units_about = "the price of one option, as call and as put";
	w.size = 100003;
	w.max_size = 1L << 28;
	w.iterations = 4;
	w.sync_every = 32;
	w.round = 50;
	w.kernels = 1;
	w.can_graph = true;
	w.growth = 1;
	workload_main(&w, argc, argv);
}
