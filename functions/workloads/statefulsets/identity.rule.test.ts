import { describe, expect, it } from 'vitest';
import { ordinalOf, podNameOf, templateForOrdinal, withIdentity } from './identity.rule.ts';

describe('the ordinal of a pod of a StatefulSet', () => {
  it.each([
    ['web-0', 0],
    ['web-12', 12],
    ['web-1234567890', 1_234_567_890],
    ['web-12345678901', undefined],
    ['web-01', undefined],
    ['web-', undefined],
    ['web', undefined],
    ['web-x', undefined],
    ['web-1x', undefined],
    ['webs-1', undefined],
    ['other-1', undefined],
  ])('is read from its name %s: %s', (name, ordinal) => {
    expect(ordinalOf('web', name)).toBe(ordinal);
    if (ordinal !== undefined) expect(podNameOf('web', ordinal)).toBe(name);
  });

  it('is in its labels, its host name and its subdomain', () => {
    const template = {
      metadata: { labels: { app: 'web' }, annotations: { note: 'x' } },
      spec: { containers: [], hostname: 'other' },
    };
    const of = { setName: 'web', ordinal: 3, revision: 'web-5c', serviceName: 'peers' };
    const expected = {
      metadata: {
        labels: {
          app: 'web',
          'statefulset.kubernetes.io/pod-name': 'web-3',
          'apps.kubernetes.io/pod-index': '3',
          'controller-revision-hash': 'web-5c',
        },
        annotations: { note: 'x' },
      },
      spec: { containers: [], hostname: 'web-3', subdomain: 'peers' },
    };
    expect(templateForOrdinal(template, of)).toEqual(expected);
    const { spec } = templateForOrdinal({}, { ...of, serviceName: '' });
    expect(spec).toEqual({ hostname: 'web-3' });
  });
});

it('a pod gets its name as a label, unless it has it', () => {
  const pod = { metadata: { name: 'web-1', labels: { app: 'web' } }, spec: { nodeName: 'n1' } };
  const labelled = {
    ...pod,
    metadata: { ...pod.metadata, labels: { app: 'web', 'statefulset.kubernetes.io/pod-name': 'web-1' } },
  };
  expect(withIdentity(pod)).toEqual(labelled);
  expect(withIdentity(labelled)).toBeUndefined();
  const renamed = { ...labelled, metadata: { ...labelled.metadata, name: 'web-2' } };
  expect(withIdentity(renamed)?.metadata.labels?.['statefulset.kubernetes.io/pod-name']).toBe('web-2');
});
