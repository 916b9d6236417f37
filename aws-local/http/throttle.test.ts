import { expect, it } from 'vitest';
import { requestThrottle } from './throttle.ts';

const rate = (requestsPerSecond: number, burstRequests: number) => ({ requestsPerSecond, burstRequests });
const BEATS = 'PUT /leases/{name}';

function accepted(accepts: (routeKey: string, atMs: number) => boolean, routeKey: string, count: number, atMs = 0) {
  return Array.from({ length: count }, () => accepts(routeKey, atMs)).filter(Boolean).length;
}

it('accepts a burst, then the rate', () => {
  const accepts = requestThrottle({ defaultRoute: rate(10, 5), routes: {} }, 0);
  expect(accepted(accepts, '$default', 20)).toBe(5);
  expect(accepted(accepts, '$default', 20, 300)).toBe(3);
  expect(accepted(accepts, '$default', 20, 60_000)).toBe(5);
});

it('a storm on the other routes does not use the tokens of a route with settings of its own', () => {
  const accepts = requestThrottle({ defaultRoute: rate(10, 5), routes: { [BEATS]: rate(10, 5) } }, 0);
  expect(accepted(accepts, '$default', 1_000)).toBe(5);
  expect(accepted(accepts, BEATS, 5)).toBe(5);
});

it('routes without settings share those of the stage', () => {
  const accepts = requestThrottle({ defaultRoute: rate(10, 5), routes: {} }, 0);
  expect(accepted(accepts, '$default', 1_000) + accepted(accepts, BEATS, 5)).toBe(5);
});

it('the account limits all routes together', () => {
  const accepts = requestThrottle({ defaultRoute: undefined, routes: { [BEATS]: rate(20_000, 20_000) } }, 0);
  expect(accepted(accepts, BEATS, 6_000)).toBe(5_000);
  expect(accepted(accepts, '$default', 1)).toBe(0);
});
