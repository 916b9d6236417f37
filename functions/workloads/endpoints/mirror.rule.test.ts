import { describe, expect, it } from 'vitest';
import type { KubeEndpointSlice, KubeEndpoints } from '../../../shared/kinds/types.ts';
import { isMirrorOf, mirroredSlices } from './mirror.rule.ts';

const PORTS = [{ name: 'db', port: 5432, protocol: 'TCP' }];
const endpoints = (subsets: readonly object[] | undefined, metadata: object = {}) =>
  ({
    metadata: { name: 'db', namespace: 'shop', uid: 'eu', ...metadata },
    ...(subsets === undefined ? {} : { subsets }),
  }) as KubeEndpoints;
const subset = (...ips: readonly string[]) => ({ addresses: ips.map((ip) => ({ ip })), ports: PORTS });
const many = (count: number, third: number) =>
  Array.from({ length: count }, (_, index) => `10.${third}.${index >> 8}.${index & 255}`);
const sizes = (slices: readonly KubeEndpointSlice[]) => slices.map((each) => each.endpoints?.length);

describe('a mirror', () => {
  const labels = {
    'kubernetes.io/service-name': 'db',
    'endpointslice.kubernetes.io/managed-by': 'endpointslicemirroring-controller.k8s.io',
  };
  const isMirror = (metadata: object) => isMirrorOf('db')({ metadata } as KubeEndpointSlice);

  it('is known by its labels while it is not being deleted', () => {
    expect(isMirror({ labels })).toBe(true);
    expect(isMirror({ labels, deletionTimestamp: 't' })).toBe(false);
    expect(isMirror({ labels: { ...labels, 'kubernetes.io/service-name': 'other' } })).toBe(false);
    expect(isMirror({ labels: { ...labels, 'endpointslice.kubernetes.io/managed-by': 'other' } })).toBe(false);
    expect(isMirror({})).toBe(false);
  });

  it('has the addresses, the labels and the annotations of its Endpoints', () => {
    const of = endpoints(
      [
        {
          ...subset('10.0.0.1'),
          notReadyAddresses: [{ ip: '10.0.0.2', hostname: 'b', nodeName: 'n', targetRef: { name: 'p' } }],
        },
      ],
      {
        labels: { team: 'x' },
        annotations: {
          note: 'y',
          'kubectl.kubernetes.io/last-applied-configuration': '{}',
          'endpoints.kubernetes.io/last-change-trigger-time': 't',
        },
      },
    );
    expect(mirroredSlices(of, [])).toEqual({
      create: [
        {
          metadata: {
            name: expect.stringMatching(/^db-[a-z0-9]{5}$/),
            generateName: 'db-',
            namespace: 'shop',
            labels: { team: 'x', ...labels },
            annotations: { note: 'y' },
            ownerReferences: [
              {
                apiVersion: 'v1',
                kind: 'Endpoints',
                name: 'db',
                uid: 'eu',
                controller: true,
                blockOwnerDeletion: true,
              },
            ],
          },
          addressType: 'IPv4',
          endpoints: [
            { addresses: ['10.0.0.1'], conditions: { ready: true } },
            {
              addresses: ['10.0.0.2'],
              conditions: { ready: false },
              hostname: 'b',
              nodeName: 'n',
              targetRef: { name: 'p' },
            },
          ],
          ports: PORTS,
        },
      ],
      update: [],
      remove: [],
    });
  });

  it('is one for each family and set of ports', () => {
    const unnamed = { addresses: [{ ip: '10.0.0.3' }], ports: [{ name: '', port: 80, protocol: 'TCP' }] };
    const { create } = mirroredSlices(endpoints([subset('10.0.0.1', 'fd00::1'), unnamed, subset('10.0.0.2')]), []);
    expect(
      create.map(({ addressType, ports, endpoints: all }) => [addressType, ports?.[0]?.port, all?.length]),
    ).toEqual([
      ['IPv4', 5432, 2],
      ['IPv6', 5432, 1],
      ['IPv4', 80, 1],
    ]);
    expect(new Set(create.map(({ metadata }) => metadata.name)).size).toBe(3);
  });

  it('leaves out what is no address, and addresses beyond a thousand of a subset', () => {
    expect(mirroredSlices(endpoints([{ addresses: [{ ip: 'x' }, {}], ports: PORTS }]), []).create).toEqual([]);
    expect(sizes(mirroredSlices(endpoints([subset(...many(1_001, 1))]), []).create)).toEqual([400, 400, 200]);
    expect(sizes(mirroredSlices(endpoints([subset(...many(400, 1)), subset('10.9.9.9')]), []).create)).toEqual([
      400, 1,
    ]);
  });

  it('has a free name where two names are the same by chance', () => {
    const subsets = Array.from({ length: 90 }, (_, index) => ({ ...subset('10.0.0.1'), ports: [{ port: index + 1 }] }));
    // The names 41 and 86 of this uid are equal.
    const { create } = mirroredSlices(endpoints(subsets, { uid: 'e19574' }), []);
    expect(new Set(create.map(({ metadata }) => metadata.name)).size).toBe(90);
    expect(mirroredSlices(endpoints(subsets, { uid: 'e19574' }), create.toReversed())).toEqual({
      create: [],
      update: [],
      remove: [],
    });
  });

  it('has a free name after the first of many subsets were removed', () => {
    const subsets = Array.from({ length: 201 }, (_, index) => ({
      ...subset('10.0.0.1'),
      ports: [{ port: index + 1 }],
    }));
    const stored = mirroredSlices(endpoints(subsets.slice(0, 200)), []).create.slice(100);
    const { create, remove } = mirroredSlices(endpoints(subsets.slice(100)), stored);
    expect([create.length, remove]).toEqual([1, []]);
  });

  it('writes the ports of a subset as text once at most, however many addresses it has', () => {
    let texts = 0;
    const port = { port: 5432, toJSON: () => (texts += 1) };
    const [slice] = mirroredSlices(endpoints([{ ...subset(...many(100, 0)), ports: [port] }]), []).create;
    expect([slice?.endpoints?.length, texts <= 1]).toEqual([100, true]);
  });

  it('is not written while it has what its Endpoints have', () => {
    const of = endpoints([
      subset(...many(450, 1)),
      { addresses: [{ ip: '10.0.0.3' }], ports: [{ port: 80, protocol: 'TCP' }] },
    ]);
    const { create } = mirroredSlices(of, []);
    expect(mirroredSlices(of, create)).toEqual({ create: [], update: [], remove: [] });
  });

  it('is changed in place, and loses annotations that its Endpoints no longer have', () => {
    const { create: stored } = mirroredSlices(endpoints([subset('10.0.0.1')], { annotations: { note: 'x' } }), []);
    const { create, update, remove } = mirroredSlices(endpoints([subset('10.0.0.2')]), stored);
    expect([create, remove, update.length]).toEqual([[], [], 1]);
    const { object } = update[0]!;
    expect(object.metadata.name).toBe(stored[0]?.metadata.name);
    expect(object.metadata).not.toHaveProperty('annotations');
    expect(object.endpoints).toEqual([{ addresses: ['10.0.0.2'], conditions: { ready: true } }]);
  });

  it('is deleted with the last address of its family and ports', () => {
    const { create: stored } = mirroredSlices(endpoints([subset('10.0.0.1', 'fd00::1')]), []);
    expect(mirroredSlices(endpoints([subset('10.0.0.1')]), stored)).toEqual({
      create: [],
      update: [],
      remove: [stored[1]],
    });
    expect(mirroredSlices(endpoints(undefined), stored).remove).toEqual(stored);
  });
});
