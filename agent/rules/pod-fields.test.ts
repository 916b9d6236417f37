import { describe, expect, it } from 'vitest';
import type { Container, KubePod } from '../../shared/kinds/types.ts';
import { podFieldValue, resourceFieldValue } from './pod-fields.ts';

const pod: KubePod = {
  metadata: {
    name: 'web',
    namespace: 'shop',
    uid: 'u1',
    labels: { tier: 'front "x"', app: 'web' },
    annotations: { 'example.com/a.b': 'one\ntwo\u0001' },
  },
  spec: { containers: [], nodeName: 'n1', serviceAccountName: 'robot' },
};
const facts = { hostIp: '192.0.2.1', allocatable: {} };

describe('a field of the pod', () => {
  it.each([
    ['metadata.name', 'web'],
    ['metadata.namespace', 'shop'],
    ['metadata.uid', 'u1'],
    ['metadata.labels', 'app="web"\ntier="front \\"x\\""'],
    ['metadata.annotations', 'example.com/a.b="one\\ntwo\\x01"'],
    ["metadata.labels['app']", 'web'],
    ["metadata.labels['absent']", ''],
    ["metadata.annotations['example.com/a.b']", 'one\ntwo\u0001'],
    ['spec.nodeName', 'n1'],
    ['spec.serviceAccountName', 'robot'],
    ['status.hostIP', '192.0.2.1'],
    ['status.hostIPs', '192.0.2.1'],
    ['status.podIP', '192.0.2.1'],
    ['status.podIPs', '192.0.2.1'],
  ])('%s is %j', (path, text) => {
    expect(podFieldValue(path, pod, facts)).toEqual({ kind: 'value', text });
  });

  it.each([
    'metadata.name',
    'metadata.namespace',
    'metadata.uid',
    'metadata.labels',
    'metadata.annotations',
    "metadata.labels['app']",
    "metadata.annotations['']",
    'spec.nodeName',
    'spec.serviceAccountName',
    'status.hostIP',
    'status.podIP',
  ])('%s is empty while it is unknown', (path) => {
    expect(podFieldValue(path, { metadata: {} }, { hostIp: undefined, allocatable: {} })).toEqual({
      kind: 'value',
      text: '',
    });
  });

  it('has the address of the pod, if it has its own', () => {
    expect(podFieldValue('status.podIP', pod, { ...facts, podIp: '10.0.0.7' })).toMatchObject({ text: '10.0.0.7' });
    expect(podFieldValue('status.hostIP', pod, { ...facts, podIp: '10.0.0.7' })).toMatchObject({ text: '192.0.2.1' });
  });

  it.each(['status.phase', "spec.labels['a']", "metadata.labels['a'] ", "xmetadata.labels['a']", 'metadata.labels[a]'])(
    'does not support %s',
    (path) => {
      expect(podFieldValue(path, pod, facts)).toEqual({ kind: 'failed', message: `unsupported fieldPath: ${path}` });
    },
  );
});

describe('a resource of a container', () => {
  const main: Container = {
    name: 'main',
    resources: {
      limits: { cpu: '1500m', memory: '1Gi', 'hugepages-2Mi': '4Mi' },
      requests: { cpu: '250m', memory: '100M', 'ephemeral-storage': '1.5' },
    },
  };
  const bare: Container = { name: 'bare' };
  const first: Container = { name: 'first', resources: { limits: { cpu: '3' } } };
  const withAll: KubePod = { metadata: {}, spec: { initContainers: [first], containers: [main, bare] } };
  const allocatable = { cpu: '8', memory: '16Gi', 'ephemeral-storage': '100', 'hugepages-2Mi': '64Mi' };
  const amountOf = (reference: object, container: Container | undefined = main) =>
    resourceFieldValue({ resource: '', ...reference }, withAll, container, { hostIp: undefined, allocatable });

  it.each([
    ['limits.cpu', undefined, '2'],
    ['limits.cpu', '1m', '1500'],
    ['limits.cpu', '100m', '15'],
    ['requests.cpu', undefined, '1'],
    ['requests.cpu', '1m', '250'],
    ['limits.memory', undefined, '1073741824'],
    ['limits.memory', '1Mi', '1024'],
    ['limits.memory', '1000Mi', '2'],
    ['requests.memory', '1M', '100'],
    ['requests.ephemeral-storage', '1', '2'],
    ['limits.hugepages-2Mi', '1Mi', '4'],
    ['requests.hugepages-2Mi', undefined, '0'],
    // A divisor of 0, or one that is none, counts as 1.
    ['limits.memory', '0', '1073741824'],
    ['limits.memory', 'x', '1073741824'],
  ])('%s by %s is %s', (resource, divisor, text) => {
    expect(amountOf({ resource, ...(divisor === undefined ? {} : { divisor }) })).toEqual({ kind: 'value', text });
  });

  it.each([
    ['limits.cpu', '8'],
    ['limits.memory', '17179869184'],
    ['limits.ephemeral-storage', '100'],
    // The machine's are for limits of these three alone.
    ['limits.hugepages-2Mi', '0'],
    ['requests.cpu', '0'],
    ['requests.memory', '0'],
  ])('%s of a container without any is %s', (resource, text) => {
    expect(amountOf({ resource }, bare)).toEqual({ kind: 'value', text });
  });

  it('is that of another container by its name', () => {
    expect(amountOf({ resource: 'limits.cpu', containerName: 'first' })).toMatchObject({ text: '3' });
    expect(amountOf({ resource: 'limits.cpu', containerName: 'bare' })).toMatchObject({ text: '8' });
    expect(amountOf({ resource: 'limits.cpu', containerName: 'none' })).toEqual({
      kind: 'failed',
      message: 'container none not found',
    });
    expect(resourceFieldValue({ resource: 'limits.cpu' }, withAll, undefined, { hostIp: '', allocatable })).toEqual({
      kind: 'failed',
      message: 'container  not found',
    });
  });

  it.each(['limits', 'limits.', 'cpu', '.cpu', 'usage.cpu', 'limits.gpu', 'limits.xhugepages-1', ''])(
    'does not support %j',
    (resource) => {
      expect(amountOf({ resource })).toEqual({
        kind: 'failed',
        message: `unsupported container resource : ${resource}`,
      });
    },
  );
});
