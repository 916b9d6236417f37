import { describe, expect, it } from 'vitest';
import type { NodeCondition, Taint } from '../../kubernetes/kubernetes.ts';
import {
  addNoExecute,
  decideNoExecute,
  liftNoExecute,
  noExecuteOf,
  reconcileNoSchedule,
  swapNoExecute,
} from './node-taints.ts';

const ready = (status: NodeCondition['status'], reason?: string): NodeCondition => ({
  type: 'Ready',
  status,
  ...(reason === undefined ? {} : { reason }),
});
const notReadyNoSchedule: Taint = { key: 'node.kubernetes.io/not-ready', effect: 'NoSchedule' };
const unreachableNoSchedule: Taint = { key: 'node.kubernetes.io/unreachable', effect: 'NoSchedule' };
const notReady: Taint = { key: 'node.kubernetes.io/not-ready', effect: 'NoExecute', timeAdded: '2026-01-01T00:00:10Z' };
const unreachable: Taint = {
  key: 'node.kubernetes.io/unreachable',
  effect: 'NoExecute',
  timeAdded: '2026-01-01T00:00:05Z',
};
const foreign: Taint = { key: 'example.com/team', value: 'a', effect: 'NoExecute' };
const none = { notReady: false, unreachable: false };

describe('reconcileNoSchedule', () => {
  it('changes not-ready for unreachable when the node falls silent', () => {
    expect(
      reconcileNoSchedule({
        taints: [foreign, notReadyNoSchedule],
        conditions: [ready('Unknown')],
        unschedulable: false,
      }),
    ).toEqual([foreign, unreachableNoSchedule]);
  });

  it('keeps the taint of creation on a node without Ready, and on one for which only we have spoken', () => {
    expect(reconcileNoSchedule({ taints: [notReadyNoSchedule], conditions: [], unschedulable: false })).toBeUndefined();
    expect(
      reconcileNoSchedule({
        taints: [notReadyNoSchedule],
        conditions: [ready('Unknown', 'NodeStatusNeverUpdated')],
        unschedulable: false,
      }),
    ).toEqual([notReadyNoSchedule, unreachableNoSchedule]);
  });

  it('removes it once Ready is True', () => {
    expect(
      reconcileNoSchedule({ taints: [notReadyNoSchedule], conditions: [ready('True')], unschedulable: false }),
    ).toEqual([]);
  });

  it('does not invent it for a node that lost its Ready condition without carrying it', () => {
    expect(reconcileNoSchedule({ taints: [], conditions: undefined, unschedulable: false })).toBeUndefined();
  });
});

describe('decideNoExecute', () => {
  it('lifts both from a Ready node', () => {
    expect(decideNoExecute('True', { notReady: true, unreachable: true })).toEqual({
      kind: 'lift',
      taints: ['unreachable', 'notReady'],
    });
    expect(decideNoExecute('True', none)).toEqual({ kind: 'none' });
  });

  it('enqueues, swaps, or leaves by what the node carries', () => {
    expect(decideNoExecute('False', none)).toEqual({ kind: 'enqueue', taint: 'notReady' });
    expect(decideNoExecute('Unknown', none)).toEqual({ kind: 'enqueue', taint: 'unreachable' });
    expect(decideNoExecute('False', { ...none, unreachable: true })).toEqual({
      kind: 'swap',
      from: 'unreachable',
      to: 'notReady',
    });
    expect(decideNoExecute('Unknown', { ...none, unreachable: true })).toEqual({ kind: 'none' });
  });

  it('heals a node left with both taints by half a swap', () => {
    expect(decideNoExecute('Unknown', { notReady: true, unreachable: true })).toEqual({
      kind: 'swap',
      from: 'notReady',
      to: 'unreachable',
    });
  });

  it('has no opinion on a node without Ready', () => {
    expect(decideNoExecute(undefined, { notReady: true, unreachable: true })).toEqual({ kind: 'none' });
  });
});

describe('NoExecute taints on a list', () => {
  it('are added with the time rounded up, and not touched when present', () => {
    expect(addNoExecute([foreign], 'unreachable', Date.UTC(2026, 0, 1, 0, 0, 4, 1))).toEqual([foreign, unreachable]);
    expect(addNoExecute([unreachable], 'unreachable', 0)).toBeUndefined();
  });

  it('keep their time through a swap', () => {
    expect(swapNoExecute([unreachable, foreign], 'notReady', 0)).toEqual([
      { ...notReady, timeAdded: unreachable.timeAdded },
      foreign,
    ]);
  });

  it('keep the earlier time where both are there, and end with one', () => {
    expect(swapNoExecute([notReady, unreachable], 'unreachable', 0)).toEqual([unreachable]);
  });

  it('are not swapped in where neither is there', () => {
    expect(swapNoExecute([foreign], 'notReady', 0)).toBeUndefined();
  });

  it('are both lifted, others left', () => {
    expect(liftNoExecute([notReady, foreign, unreachable])).toEqual([foreign]);
    expect(liftNoExecute([foreign, notReadyNoSchedule])).toBeUndefined();
  });

  it('are found by key and effect', () => {
    expect(noExecuteOf([notReadyNoSchedule, unreachable])).toEqual({ notReady: false, unreachable: true });
  });
});
