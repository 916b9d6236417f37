import { describe, expect, it } from 'vitest';
import {
  afterOutcome,
  initialState,
  outcomeMessage,
  PROBE_KINDS,
  type ProbeKind,
  type ProbeOutcome,
  periodMs,
  probeCommand,
  probeGraceSeconds,
  probeOf,
  restartMessage,
  timeoutMs,
  unsupportedProbe,
} from './probe.ts';

const FAILURE: ProbeOutcome = { kind: 'failure', message: 'm' };
const SUCCESS: ProbeOutcome = { kind: 'success' };
const WARNING: ProbeOutcome = { kind: 'warning', message: 'm' };
const ERROR: ProbeOutcome = { kind: 'error', message: 'm' };
const stateAfter = (kind: ProbeKind, probe: object, ...outcomes: readonly ProbeOutcome[]) =>
  outcomes.reduce((state, outcome) => afterOutcome(state, kind, probe, outcome), initialState(kind, 'c'));

describe('the state of a probe', () => {
  it.each<[ProbeKind, boolean, string]>([
    ['startup', false, 'unknown'],
    ['startup', true, 'success'],
    ['readiness', false, 'failure'],
    ['readiness', true, 'success'],
    ['liveness', false, 'success'],
    ['liveness', true, 'success'],
  ])('of %s begins, ready before: %j, with %s', (kind, wasReady, result) => {
    const state = { containerId: 'c', result, lastOutcome: undefined, repeated: 0, onHold: false };
    expect(initialState(kind, 'c', wasReady)).toEqual(state);
  });

  it('becomes a failure with the third of three, and a restart follows', () => {
    const two = stateAfter('liveness', {}, FAILURE, FAILURE);
    expect(two).toEqual({ containerId: 'c', result: 'success', lastOutcome: 'failure', repeated: 2, onHold: false });
    expect(afterOutcome(two, 'liveness', {}, FAILURE)).toEqual({
      ...two,
      result: 'failure',
      repeated: 0,
      onHold: true,
    });
    expect(stateAfter('startup', { failureThreshold: 1 }, FAILURE)).toMatchObject({ result: 'failure', onHold: true });
  });

  it('of readiness fails without a restart, and counts on', () => {
    const failing = stateAfter('readiness', { failureThreshold: 1 }, SUCCESS, FAILURE, FAILURE);
    expect(failing).toEqual({
      containerId: 'c',
      result: 'failure',
      lastOutcome: 'failure',
      repeated: 2,
      onHold: false,
    });
  });

  it('counts outcomes in a row: another one begins again, an error counts as neither', () => {
    expect(stateAfter('liveness', {}, FAILURE, FAILURE, SUCCESS, FAILURE).repeated).toBe(1);
    const failing = stateAfter('liveness', {}, FAILURE);
    expect(afterOutcome(failing, 'liveness', {}, ERROR)).toBe(failing);
  });

  it('becomes a success at once, or with as many as the probe wants; a warning is one', () => {
    expect(stateAfter('readiness', {}, SUCCESS).result).toBe('success');
    expect(stateAfter('readiness', { successThreshold: 2 }, SUCCESS).result).toBe('failure');
    expect(stateAfter('readiness', { successThreshold: 2 }, SUCCESS, WARNING).result).toBe('success');
    expect(stateAfter('startup', {}, WARNING)).toMatchObject({ result: 'success', onHold: false });
  });
});

describe('the fields of a probe', () => {
  it('have the defaults of upstream, and at least a second', () => {
    expect([periodMs({}), periodMs({ periodSeconds: 0 }), periodMs({ periodSeconds: 2 })]).toEqual([
      10_000, 1_000, 2_000,
    ]);
    expect([timeoutMs({}), timeoutMs({ timeoutSeconds: 0 }), timeoutMs({ timeoutSeconds: 2 })]).toEqual([
      1_000, 1_000, 2_000,
    ]);
  });

  it('have the grace period of the probe, then of the pod, then 30 seconds', () => {
    const pod = { metadata: {}, spec: { terminationGracePeriodSeconds: 7 } } as never;
    expect(probeGraceSeconds({ terminationGracePeriodSeconds: 0 }, pod)).toBe(0);
    expect(probeGraceSeconds({}, pod)).toBe(7);
    expect(probeGraceSeconds({}, { metadata: {} } as never)).toBe(30);
  });

  it('are those of the kind', () => {
    const [startupProbe, readinessProbe, livenessProbe] = [
      { periodSeconds: 1 },
      { periodSeconds: 2 },
      { periodSeconds: 3 },
    ];
    const container = { name: 'c', startupProbe, readinessProbe, livenessProbe };
    expect(PROBE_KINDS.map((kind) => probeOf(container, kind))).toEqual([startupProbe, readinessProbe, livenessProbe]);
    expect(PROBE_KINDS.map((kind) => probeOf({ name: 'c' }, kind))).toEqual([undefined, undefined, undefined]);
  });

  it('with gRPC are refused by name', () => {
    const grpc = { grpc: { port: 1 } };
    expect(unsupportedProbe({ name: 'c', livenessProbe: grpc })).toBe(
      'livenessProbe.grpc is not supported on this node',
    );
    expect(unsupportedProbe({ name: 'c', startupProbe: grpc, readinessProbe: grpc })).toContain('startupProbe.grpc');
    expect(unsupportedProbe({ name: 'c', readinessProbe: { exec: {} } })).toBeUndefined();
  });

  it('have a command with the variables of the spec', () => {
    const env = [{ name: 'A', value: 'x' }, { name: 'B' }, { name: 'C', value: 'y', valueFrom: {} }];
    expect(probeCommand(['$(A)', '[$(B)]', '$(C)', 'd'], { name: 'c', env })).toEqual(['x', '[]', '$(C)', 'd']);
    expect(probeCommand(['$(A)'], { name: 'c' })).toEqual(['$(A)']);
  });
});

it('reports every outcome but a success', () => {
  const texts = [SUCCESS, WARNING, FAILURE, ERROR].map((outcome) => outcomeMessage('startup', outcome));
  expect(texts).toEqual([
    undefined,
    'Startup probe warning: m',
    'Startup probe failed: m',
    'Startup probe errored and resulted in unknown state: m',
  ]);
  expect(outcomeMessage('readiness', FAILURE)).toBe('Readiness probe failed: m');
  expect(outcomeMessage('liveness', FAILURE)).toBe('Liveness probe failed: m');
});

it.each([
  ['Always', undefined, true],
  ['OnFailure', undefined, true],
  ['Never', undefined, false],
  ['Never', 'Always', true],
  ['Always', 'Never', false],
])('says of a pod with %s and a container with %s whether it is restarted', (ofPod, restartPolicy, isRestarted) => {
  const pod = { metadata: {}, spec: { restartPolicy: ofPod } } as never;
  expect(restartMessage('liveness', pod, { name: 'c', ...(restartPolicy && { restartPolicy }) })).toBe(
    `Container c failed liveness probe${isRestarted ? ', will be restarted' : ''}`,
  );
});
