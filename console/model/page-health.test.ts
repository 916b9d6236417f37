import { expect, it } from 'vitest';
import { type Problem, pageHealthOf, skewOf, skewText } from './page-health.ts';

const problem = (more: Partial<Problem>): Problem => ({
  message: 'no response',
  status: 0,
  isOfApi: false,
  sinceMs: 50_000,
  ...more,
});
const health = (problems: Record<string, Partial<Problem>>, goodAtMs: number | 'never' = 60_000) =>
  pageHealthOf(
    new Map(Object.entries(problems).map(([source, each]) => [source, problem(each)])),
    goodAtMs === 'never' ? undefined : goodAtMs,
    100_000,
  );

it('is current without a problem', () => {
  expect(health({})).toEqual({ banner: undefined, goodAtMs: 60_000, notices: [] });
});

it('has one banner when the API does not answer, with the age of what is shown', () => {
  expect(
    health({ Nodes: {}, 'The status of the cluster': { message: 'The console does not answer.' }, 'Pending pods': {} }),
  ).toEqual({
    banner: 'No data from the API for 40s: no response. What you see is 40s old.',
    goodAtMs: 60_000,
    notices: [],
  });
});

it('names the nodes when they alone are not current', () => {
  // The status was read later than the nodes.
  expect(health({ Nodes: { message: 'The connection of the watch was lost.' } })).toMatchObject({
    banner: 'Nodes: no changes for 50s: The connection of the watch was lost.',
    goodAtMs: 50_000,
  });
});

it('is current where one list is not permitted, and names it', () => {
  const forbidden = {
    status: 403,
    isOfApi: true,
    message: 'pods is forbidden: User "eve" cannot list resource "pods"',
  };
  expect(health({ 'Pending pods': forbidden })).toMatchObject({
    banner: undefined,
    notices: ['Pending pods: not permitted to your user. pods is forbidden: User "eve" cannot list resource "pods".'],
  });
  expect(health({ Nodes: forbidden }).banner).toBeUndefined();
});

it('says that the token is that of another cluster, or that no user is signed in', () => {
  expect(health({ Nodes: { status: 401, isOfApi: true, message: 'Unauthorized' } }, 'never').banner).toBe(
    'The API refuses the token of this console: it has expired, or is that of another cluster. Nothing has been read yet.',
  );
  expect(health({ 'Pending pods': { status: 401 } }).banner).toBe(
    'You are not signed in: run `npx nodekeeper console` and open the address that it prints.',
  );
});

it('is stale in the part that failed alone', () => {
  expect(health({ 'The state of the zones': { status: 503, isOfApi: true, message: 'too busy' } }).notices).toEqual([
    'The state of the zones: stale for 50s. too busy.',
  ]);
});

it('compares the clocks, to the second that the API sends', () => {
  expect([skewOf(10_000, 12_900), skewOf(10_000, 13_000), skewOf(70_000, 10_000)]).toEqual([0, -3_000, 60_000]);
  expect(skewText(0)).toBeUndefined();
  expect(skewText(60_000)).toContain('is 60s behind that of the cluster');
  expect(skewText(-60_000)).toContain('is 60s ahead of that of the cluster');
});

it('states that there are more nodes than it has read, whether or not these are current', () => {
  const notice = 'Nodes: there are more nodes than the 20000 that this page reads: its counts are of these.';
  expect(pageHealthOf(new Map(), 60_000, 100_000, 20_000)).toEqual({
    banner: undefined,
    goodAtMs: 60_000,
    notices: [notice],
  });
  expect(pageHealthOf(new Map([['Nodes', problem({})]]), 60_000, 100_000, 20_000).notices).toEqual([notice]);
});
