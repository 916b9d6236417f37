import { describe, expect, it } from 'vitest';
import type { KubeObject } from '../types.ts';
import { budgetStatusOf, mayEvict, withBudgetStatus } from './budget-status.ts';

const pod = (
  name: string,
  more: { ready?: boolean; deleted?: boolean; phase?: string; app?: string } = {},
): KubeObject => ({
  metadata: {
    name,
    namespace: 'team',
    labels: { app: more.app ?? 'web' },
    ...(more.deleted === true ? { deletionTimestamp: '2026-01-01T00:00:00Z' } : {}),
  },
  spec: {},
  status: {
    phase: more.phase ?? 'Running',
    conditions: [{ type: 'Ready', status: more.ready === false ? 'False' : 'True' }],
  },
});
const budget = (spec: Record<string, unknown>): KubeObject => ({
  metadata: { name: 'b', namespace: 'team', generation: 3 },
  spec: { selector: { matchLabels: { app: 'web' } }, ...spec },
  status: { disruptedPods: { old: '2026-01-01T00:00:00Z' } },
});
const three = [pod('a'), pod('b'), pod('c')];

describe('budgetStatusOf', () => {
  it('counts healthy pods of the selector against minAvailable', () => {
    expect(budgetStatusOf(budget({ minAvailable: 2 }), [...three, pod('x', { app: 'db' })])).toEqual({
      observedGeneration: 3,
      disruptionsAllowed: 1,
      currentHealthy: 3,
      desiredHealthy: 2,
      expectedPods: 3,
    });
  });

  it('reads the selector once, however many pods there are', () => {
    let reads = 0;
    const matchLabels = {
      get app() {
        reads += 1;
        return 'web';
      },
    };
    expect(budgetStatusOf(budget({ selector: { matchLabels } }), three).currentHealthy).toBe(3);
    expect(reads).toBe(1);
  });

  it.each([
    [{ minAvailable: '50%' }, 1],
    [{ maxUnavailable: '25%' }, 1],
    [{ maxUnavailable: 2 }, 2],
    [{ maxUnavailable: 9 }, 3],
    [{ maxUnavailable: 0 }, 0],
    [{ minAvailable: '100%' }, 0],
    [{ minAvailable: 7 }, 0],
    [{}, 3],
  ])('rounds percentages up and is never negative: %j allows %i of three', (spec, allowed) => {
    expect(budgetStatusOf(budget(spec), three).disruptionsAllowed).toBe(allowed);
  });

  it('counts a pod that is going, or not ready, as missing; one that has ended not at all', () => {
    const pods = [pod('a'), pod('b', { deleted: true }), pod('c', { ready: false }), pod('d', { phase: 'Succeeded' })];
    expect(budgetStatusOf(budget({ maxUnavailable: 2 }), pods)).toMatchObject({
      expectedPods: 3,
      currentHealthy: 1,
      desiredHealthy: 1,
      disruptionsAllowed: 0,
    });
  });

  it('selects nothing without a selector, everything with an empty one', () => {
    expect(budgetStatusOf(budget({ selector: undefined }), three).expectedPods).toBe(0);
    expect(budgetStatusOf(budget({ selector: {} }), three).expectedPods).toBe(3);
  });

  it('forgets who was disrupted earlier: a pod that is going says so itself', () => {
    expect(withBudgetStatus(budget({ minAvailable: 1 }), three).status).not.toHaveProperty('disruptedPods');
  });
});

describe('mayEvict', () => {
  const sick = pod('sick', { ready: false });
  const asked = (spec: Record<string, unknown>, evicted: KubeObject) =>
    mayEvict(withBudgetStatus(budget(spec), [...three, sick]), evicted);

  it('allows one disruption less after each eviction of a healthy pod', () => {
    expect(asked({ minAvailable: 2 }, three[0]!)).toMatchObject({
      kind: 'allowed',
      budget: { status: { disruptionsAllowed: 0, currentHealthy: 2, desiredHealthy: 2 } },
    });
  });

  it('lets an unhealthy pod go while the healthy ones suffice, and holds it while they do not', () => {
    expect(asked({ minAvailable: 3 }, sick)).toMatchObject({
      kind: 'allowed',
      budget: { status: { currentHealthy: 3 } },
    });
    expect(asked({ minAvailable: 4 }, sick)).toEqual({
      kind: 'refused',
      why: 'The disruption budget b needs 4 healthy pods and has 3 currently',
    });
  });

  it('lets an unhealthy pod always go where the budget says so', () => {
    expect(asked({ minAvailable: 4, unhealthyPodEvictionPolicy: 'AlwaysAllow' }, sick).kind).toBe('allowed');
  });
});
