import { expect, it } from 'vitest';
import { OFFLINE_STOP_AFTER } from '../../shared/kinds/pods/offline-stop.ts';
import type { Container, KubePod } from '../../shared/kinds/types.ts';
import { neededImages, offlineImages, podsThatWait } from './offline-start.ts';

const pod = (name: string, containers: readonly Container[], more: Partial<KubePod['metadata']> = {}): KubePod => ({
  metadata: { name, namespace: 'shop', ...more },
  spec: { containers: [...containers] },
});
const reading = (pods: readonly KubePod[], staticPods: readonly KubePod[] = []) => ({
  remembered: { kind: 'read', pods, refusals: [], isAnyUsable: true } as const,
  staticPods,
});

it('names each image once, with all pods that use it, init containers and static pods included', () => {
  const web = { name: 'main', image: 'web:1' };
  const withInit = {
    ...pod('b', [web]),
    spec: { initContainers: [{ name: 'init', image: 'init:1' }], containers: [web] },
  };
  const twice = pod('a', [web, { ...web, name: 'again' }]);
  const proxy = pod('proxy', [{ name: 'main', image: 'proxy:1' }]);
  expect(offlineImages(reading([withInit, twice], [proxy]), new Set(['web:1', 'proxy:1']))).toEqual([
    { image: 'init:1', state: 'missing', pods: ['shop/b'] },
    { image: 'proxy:1', state: 'here', pods: ['shop/proxy'] },
    { image: 'web:1', state: 'here', pods: ['shop/a', 'shop/b'] },
  ]);
});

it.each<[string, Container, string]>([
  ['Always', { image: 'web:1', imagePullPolicy: 'Always' }, 'alwaysPulled'],
  ['IfNotPresent', { image: 'web:1', imagePullPolicy: 'IfNotPresent' }, 'here'],
  ['Never', { image: 'other:1', imagePullPolicy: 'Never' }, 'missing'],
  ['the default of a tag', { image: 'web:1' }, 'here'],
  ['the default of the tag latest', { image: 'web:latest' }, 'alwaysPulled'],
])('knows what a start does with the pull policy %s', (_policy, container, state) => {
  const found = offlineImages(reading([pod('a', [container])]), new Set(['web:1', 'web:latest']));
  expect(found.map((each) => each.state)).toEqual([state]);
});

it('separates the pods that always pull an image from those that do not', () => {
  const always = pod('a', [{ image: 'web:1', imagePullPolicy: 'Always' }]);
  const found = offlineImages(reading([always, pod('b', [{ image: 'web:1' }])]), new Set(['web:1']));
  expect(found).toEqual([
    { image: 'web:1', state: 'alwaysPulled', pods: ['shop/a'] },
    { image: 'web:1', state: 'here', pods: ['shop/b'] },
  ]);
});

it('leaves out a pod that must not run twice: it starts when the API answers', () => {
  const once = pod('db', [{ image: 'db:1' }], { annotations: { [OFFLINE_STOP_AFTER]: '2h' } });
  const both = reading([once, pod('web', [{ image: 'web:1' }])]);
  expect([podsThatWait(both), neededImages(both).map(({ image }) => image)]).toEqual([['shop/db'], ['web:1']]);
});

it('knows static pods alone where no pods are remembered', () => {
  const staticPods = [pod('proxy', [{ image: 'proxy:1' }])];
  const off = { remembered: { kind: 'off' }, staticPods } as const;
  expect([neededImages(off).length, podsThatWait(off)]).toEqual([1, []]);
  expect(neededImages({ ...off, staticPods: [{ metadata: { name: 'empty' } }] })).toEqual([]);
});
