import { describe, expect, it } from 'vitest';
import type { KubePod, PodSpec } from '../../../shared/kinds/types.ts';
import type { Taint } from '../../../shared/kubernetes/kubernetes.ts';
import {
  daemonNodeOf,
  daemonTemplate,
  placementOf,
  targetNodeOf,
  templateForNode,
  verdictFor,
} from './placement.rule.ts';

const OWN = [
  { key: 'node.kubernetes.io/not-ready', operator: 'Exists', effect: 'NoExecute' },
  { key: 'node.kubernetes.io/unreachable', operator: 'Exists', effect: 'NoExecute' },
  { key: 'node.kubernetes.io/disk-pressure', operator: 'Exists', effect: 'NoSchedule' },
  { key: 'node.kubernetes.io/memory-pressure', operator: 'Exists', effect: 'NoSchedule' },
  { key: 'node.kubernetes.io/pid-pressure', operator: 'Exists', effect: 'NoSchedule' },
  { key: 'node.kubernetes.io/unschedulable', operator: 'Exists', effect: 'NoSchedule' },
  { key: 'nodekeeper.dev/planned-silence', operator: 'Exists', effect: 'NoSchedule' },
  { key: 'nodekeeper.dev/flapping', operator: 'Exists', effect: 'NoSchedule' },
];
const spec = (of: object) => of as PodSpec;
const requiring = (nodeSelectorTerms: readonly object[]) => ({
  nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } },
});
const nodeTaint = (effect: string) => ({ key: 'example.com/x', effect }) as Taint;

describe('the placement of a template', () => {
  it('without fields is any node, with the tolerations of daemons', () => {
    const any = { nodeName: '', nodeSelector: {}, tolerations: OWN };
    expect(placementOf(undefined)).toEqual(any);
    expect('nodeTerms' in placementOf(spec({ affinity: { nodeAffinity: {} } }))).toBe(false);
    expect(placementOf(spec({ affinity: {} }))).toEqual(any);
  });

  it('has the name, the selector and the terms of the template', () => {
    const terms = [{ matchExpressions: [{ key: 'zone', operator: 'Exists' }] }];
    const of = spec({ nodeName: 'n1', nodeSelector: { a: 'b' }, affinity: requiring(terms) });
    expect(placementOf(of)).toEqual({ nodeName: 'n1', nodeSelector: { a: 'b' }, nodeTerms: terms, tolerations: OWN });
  });

  it('on the network of the host tolerates a node without a network', () => {
    const missing = { key: 'node.kubernetes.io/network-unavailable', operator: 'Exists', effect: 'NoSchedule' };
    expect(placementOf(spec({ hostNetwork: true })).tolerations).toEqual([...OWN, missing]);
    expect(placementOf(spec({ hostNetwork: false })).tolerations).toEqual(OWN);
  });

  it.each([
    ['with seconds', { ...OWN[0], tolerationSeconds: 5 }, true],
    ['with an empty value', { ...OWN[0], value: '' }, true],
    ['with a value', { ...OWN[0], value: 'x' }, false],
    ['of another key', { ...OWN[0], key: 'a' }, false],
    ['of another effect', { ...OWN[0], effect: 'NoSchedule' }, false],
    ['of another operator', { ...OWN[0], operator: 'Equal' }, false],
  ])('replaces an equal toleration %s: %s', (_what, own, isReplaced) => {
    expect(placementOf(spec({ tolerations: [own] })).tolerations).toEqual(isReplaced ? OWN : [own, ...OWN]);
  });
});

describe('a node', () => {
  const node = (over: object = {}) => ({ name: 'n1', labels: { disk: 'ssd' }, taints: [], ...over });

  it('is read with its name, labels and taints, or without', () => {
    const taints = [nodeTaint('NoSchedule')];
    const whole = { metadata: { name: 'n1', labels: { a: 'b' } }, spec: { taints } };
    expect(daemonNodeOf(whole as never)).toEqual({ name: 'n1', labels: { a: 'b' }, taints });
    expect(daemonNodeOf({ metadata: {} } as never)).toEqual({ name: '', labels: {}, taints: [] });
  });

  it.each([
    ['any', {}, node(), true, true],
    ['with the name', { nodeName: 'n1' }, node(), true, true],
    ['with another name', { nodeName: 'n2' }, node(), false, false],
    ['that is not selected', { nodeSelector: { disk: 'hdd' } }, node(), false, false],
    [
      'that a term excludes',
      { affinity: requiring([{ matchExpressions: [{ key: 'x', operator: 'Exists' }] }]) },
      node(),
      false,
      false,
    ],
    ['with a taint against new pods', {}, node({ taints: [nodeTaint('NoSchedule')] }), false, true],
    ['with a taint that evicts', {}, node({ taints: [nodeTaint('NoExecute')] }), false, false],
    [
      'with a taint that is tolerated',
      { tolerations: [{ operator: 'Exists' }] },
      node({ taints: [nodeTaint('NoExecute')] }),
      true,
      true,
    ],
  ])('%s runs a pod, or keeps it', (_what, of, on, runs, stays) => {
    expect(verdictFor(placementOf(spec(of)), on)).toEqual({ runs, stays });
  });
});

describe('the pod for a node', () => {
  it('has the labels of the template and those of the set, and all tolerations', () => {
    const template = { metadata: { labels: { a: '1', b: '1' }, annotations: { c: '1' } }, spec: { nodeName: 'n1' } };
    expect(daemonTemplate(template as never, { b: '2' })).toEqual({
      metadata: { labels: { a: '1', b: '2' }, annotations: { c: '1' } },
      spec: { nodeName: 'n1', tolerations: OWN },
    });
    expect(daemonTemplate(undefined, { b: '2' })).toEqual({
      metadata: { labels: { b: '2' } },
      spec: { tolerations: OWN },
    });
  });

  it('names its node in place of the required node affinity, and keeps the other affinity', () => {
    const preferredDuringSchedulingIgnoredDuringExecution = [{ weight: 1 }];
    const affinity = {
      podAffinity: {},
      nodeAffinity: { ...requiring([{}]).nodeAffinity, preferredDuringSchedulingIgnoredDuringExecution },
    };
    const metadata = { labels: { a: '1' } };
    const named = requiring([{ matchFields: [{ key: 'metadata.name', operator: 'In', values: ['n1'] }] }]).nodeAffinity;
    expect(templateForNode({ metadata, spec: { hostPID: true, affinity } } as never, 'n1')).toEqual({
      metadata,
      spec: {
        hostPID: true,
        affinity: { podAffinity: {}, nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution, ...named } },
      },
    });
    expect(templateForNode({}, 'n1')).toEqual({ spec: { affinity: { nodeAffinity: named } } });
  });

  const field = (over: object = {}) => ({ key: 'metadata.name', operator: 'In', values: ['n2'], ...over });
  it.each<[string, object, string | undefined]>([
    ['bound', { nodeName: 'n1', affinity: requiring([{ matchFields: [field()] }]) }, 'n1'],
    ['made for a node', { nodeName: '', affinity: requiring([{}, { matchFields: [field()] }]) }, 'n2'],
    ['with two names', { affinity: requiring([{ matchFields: [field({ values: ['a', 'b'] })] }]) }, undefined],
    ['without a name', { affinity: requiring([{ matchFields: [field({ values: undefined })] }]) }, undefined],
    ['with another field', { affinity: requiring([{ matchFields: [field({ key: 'a' })] }]) }, undefined],
    ['with another operator', { affinity: requiring([{ matchFields: [field({ operator: 'NotIn' })] }]) }, undefined],
    ['without terms', { affinity: { nodeAffinity: {} } }, undefined],
    ['without affinity', {}, undefined],
  ])('%s has a node, or none', (_what, of, target) => {
    expect(targetNodeOf({ metadata: {}, spec: of } as KubePod)).toBe(target);
  });

  it('without a spec has no node', () => {
    expect(targetNodeOf({ metadata: {} } as KubePod)).toBeUndefined();
  });
});
