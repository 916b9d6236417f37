import { globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { repositoryRoot } from '../../cdk/lib/function-names.ts';
import { apiInMemory } from '../../test/support/api-in-memory.ts';
import { APPLICATION_OBJECTS } from '../../test/support/application-objects.ts';
import { expectDocumented, markdownTable } from '../../test/support/documented.ts';
import { qualifiedResource } from '../kubernetes/status.ts';
import { type Effect, effectOf, KIND_EFFECTS, type KindEffect } from './effects.ts';
import { resources } from './registry.ts';

/** What happens, by the first of the kinds: cells of docs/clients.md, with the links of that page. */
const DOCUMENTED: Readonly<Record<string, string>> = {
  nodes: 'a Node without heartbeats is marked and tainted, and its pods are evicted',
  pods: '[scheduled](scheduler.md), and run by [agents](agent.md) and kubelets',
  'deployments.apps': '[they make and replace pods](workloads.md); the claims of a StatefulSet too',
  'validatingadmissionpolicies.admissionregistration.k8s.io':
    '[evaluated for writes through the API](admission-policies.md)',
  'poddisruptionbudgets.policy': 'v1 and v1beta1; evaluated at evictions; [status](workloads.md#poddisruptionbudgets)',
  resourcequotas: 'enforced; a namespace without them costs nothing',
  namespaces:
    'each has the account `default` and the ConfigMap `kube-root-ca.crt` with the authorities of the endpoint',
  'runtimeclasses.node.k8s.io': 'a pod gets overhead, node selector and tolerations of its class',
  serviceaccounts: 'sign in with [tokens](access.md#service-accounts); each pod has one, with a volume of its token',
  'roles.rbac.authorization.k8s.io': '[evaluated](access.md#roles); aggregated; checked against escalation',
  'certificatesigningrequests.certificates.k8s.io':
    'signed by `nodekeeper serve` ([one-machine.md](one-machine.md#certificates)); on AWS stored and approved, and nothing is signed',
  endpoints:
    'of Services with a selector written from their pods; other Endpoints stored as sent, and mirrored into EndpointSlices; `default/kubernetes` has the address of `--listen`; on AWS, and on loopback, that of its Service',
  services:
    'an address of 10.96.0.0/16, node ports of 30000–32767, and Endpoints; [routed](services.md) by agents with `services.enabled`, and by kube-proxy',
  persistentvolumes: '[bound](volumes.md); class `local` makes directories on machines with an agent',
  'volumeattachments.storage.k8s.io':
    'written by kubelets and CSI drivers; volumes that no pod uses are detached from dead nodes',
  'agentreleases.nodekeeper.dev': 'versions that [agents install themselves](agent.md#updates)',
  'sitepolicies.nodekeeper.dev':
    'pods that [the hub of a site may move](hub.md#pods-that-may-move-without-the-cluster)',
  'nodeidentities.nodekeeper.dev': 'who may sign in [as a node](security.md)',
  configmaps: 'stored; nodes read what their pods refer to',
  events: 'one object in two forms, for an hour',
  'controllerrevisions.apps': 'stored',
  'nodes.metrics.k8s.io': 'what agents report; a kubelet reports nothing here',
  'decisions.nodekeeper.dev': 'read-only: what the controllers [decided](explain.md), and their state',
  'networkpolicies.networking.k8s.io':
    'enforced by agents that [route Services](services.md#networkpolicies), for pods with an address of their own',
  'customresourcedefinitions.apiextensions.k8s.io': '[adds a kind](custom-resources.md); conversion `None`',
  'mutatingwebhookconfigurations.admissionregistration.k8s.io':
    '[called](admission-policies.md#webhooks) by `nodekeeper serve`; refused on AWS',
};
const whatOf = ({ kinds, what = DOCUMENTED[kinds[0] ?? ''] ?? '' }: KindEffect): string => what;

const shortName = (kind: string): string => (kind.endsWith('.metrics.k8s.io') ? kind : (kind.split('.')[0] ?? ''));
const namesOf = (kinds: readonly string[]): string => [...new Set(kinds.map(shortName))].join(', ');
const kindsOf = (effect: Effect): string =>
  namesOf(KIND_EFFECTS.filter((each) => each.effect === effect).flatMap(({ kinds }) => kinds));
const unenforced = resources.filter((each) => effectOf(each)?.effect === 'unenforced' && each.servedFrom === undefined);

describe('the table of kinds', () => {
  it('has each kind that is served once, and no other', () => {
    const served = new Set(resources.map(qualifiedResource));
    expect(KIND_EFFECTS.flatMap(({ kinds }) => kinds).toSorted()).toEqual([...served].toSorted());
  });

  it('calls a kind empty when no user can create it, and warns of each that nothing acts on', () => {
    for (const each of resources) {
      const { effect, warning } = effectOf(each) ?? {};
      if (effect === 'empty')
        expect([each.resource, each.verbs]).not.toEqual([each.resource, expect.arrayContaining(['create'])]);
      if (effect === 'unenforced') expect([each.resource, warning]).toEqual([each.resource, expect.any(String)]);
    }
  });

  it('calls no kind unenforced that a controller, the scheduler or the agent knows', () => {
    const textOf = (path: string): string => readFileSync(join(repositoryRoot, path), 'utf8');
    const folders = globSync('shared/kinds/*/resource.ts', { cwd: repositoryRoot })
      .filter((path) => unenforced.some(({ resource }) => textOf(path).includes(`'${resource}'`)))
      .map(dirname);
    expect(folders.length).toBeGreaterThan(2);
    const programs = globSync('{functions,server,agent,shared/{scheduling,fleet}}/**/*.ts', {
      cwd: repositoryRoot,
      exclude: ['functions/api/**', '**/*.test.ts'],
    });
    const knowing = programs.filter((path) => folders.some((folder) => textOf(path).includes(`${folder}/`)));
    expect(knowing).toEqual([]);
  });

  it('is in the documentation', () => {
    const rows = KIND_EFFECTS.map((each) => [namesOf(each.kinds), each.effect, whatOf(each)]);
    expectDocumented('docs/clients.md', 'kinds', markdownTable([['kinds', 'effect', 'what happens'], ...rows]));
    const summary = [
      ['what happens', 'kinds'],
      ['something acts on them', kindsOf('acts')],
      ['stored, for those who read them', kindsOf('data')],
      ['**stored, and nothing acts on them**: each creation is answered with a warning', kindsOf('unenforced')],
      ['always empty; writes are refused', kindsOf('empty')],
    ];
    expectDocumented('docs/kubectl.md', 'kinds-by-effect', markdownTable(summary));
    const notYet = KIND_EFFECTS.filter(({ effect, warning }) => effect === 'empty' || warning !== undefined);
    // Links of docs, from the root.
    const lines = notYet.map((each) => [
      namesOf(each.kinds),
      whatOf(each).replaceAll(/\]\((?=[\w-]+\.md)/g, '](docs/'),
    ]);
    expectDocumented('README.md', 'not-yet', markdownTable([['kinds', 'what happens'], ...lines]));
  });
});

describe('a kind that nothing acts on', () => {
  it.each(unenforced.map((each) => [`${each.resource} ${each.version}`, each] as const))(
    '%s is created with a warning, and refused with the policy unenforcedKinds: refuse',
    async (_, { group, version, resource, kind, namespaced }) => {
      const path = `/apis/${group}/${version}/${namespaced ? 'namespaces/default/' : ''}${resource}`.replace(
        '/apis//',
        '/api/',
      );
      const body = {
        ...APPLICATION_OBJECTS[resource],
        metadata: { name: 'a' },
      };
      const apply = {
        body: { apiVersion: group === '' ? version : `${group}/${version}`, kind, ...body },
        contentType: 'application/apply-patch+yaml',
      };
      const warns = apiInMemory();
      const created = await warns.send('POST', path, { body });
      expect([created.code, created.headers['warning']]).toEqual([
        201,
        expect.stringMatching(/^299 - "the \w+ is stored: no/),
      ]);
      const refuses = apiInMemory({ policy: { unenforcedKinds: 'refuse' } });
      const answers = [
        await refuses.send('POST', path, { body }),
        await refuses.send('PATCH', `${path}/a?fieldManager=me`, apply),
      ];
      for (const { code, body: answer } of answers) {
        expect([code, answer.message]).toEqual([
          403,
          expect.stringContaining('"a" is forbidden: the policy has unenforcedKinds: refuse, and nothing acts on it'),
        ]);
      }
      expect((await refuses.send('GET', path)).body.items).toEqual([]);
    },
  );
});
