import { expect, it } from 'vitest';
import { parseMetrics } from '../../console/model/metrics-text.ts';
import type { KubeClusterRole, KubeClusterRoleBinding } from '../../shared/kinds/types.ts';
import { hubAccounts, hubFinding, hubsFinding } from './hub-checks.ts';

const HELD = ['nodes', 'pods', 'clusterroles', 'clusterrolebindings', 'roles', 'rolebindings', 'configmaps'];

function metrics(of: { readonly lacks?: readonly string[]; readonly behindSeconds?: number; readonly shown?: number }) {
  const { lacks = [], behindSeconds, shown = 0 } = of;
  const holds = HELD.map((each) => `nodekeeper_hub_holds{resource="${each}"} ${lacks.includes(each) ? 0 : 1}`);
  return parseMetrics(
    [
      ...holds,
      `nodekeeper_hub_link_up ${behindSeconds === undefined ? 1 : 0}`,
      `nodekeeper_hub_behind_seconds ${behindSeconds ?? 0}`,
      `nodekeeper_hub_shown_statuses ${shown}`,
    ].join('\n'),
  );
}

it('a hub that follows the cluster says what it holds, and what it passes', () => {
  expect(hubFinding(metrics({}), undefined)).toEqual({
    outcome: 'ok',
    measured: 'follows the cluster, holds 7 of 7 resources',
  });
  expect(hubFinding(metrics({ lacks: ['configmaps'], shown: 2 }), undefined)).toEqual({
    outcome: 'ok',
    measured:
      'follows the cluster, holds 6 of 7 resources, shows 2 statuses of its site that the cluster does not have; ' +
      'passed are reads of configmaps',
  });
});

it('a hub without the rights that it is for is found', () => {
  expect(hubFinding(metrics({ lacks: ['nodes', 'pods'] }), undefined)).toEqual({
    outcome: 'warn',
    measured: 'follows the cluster, holds 5 of 7 resources; it may not read nodes and pods',
    next: 'bind its account as in docs/hub.md',
  });
  expect(hubFinding(metrics({ lacks: ['roles', 'nodes'] }), undefined)).toMatchObject({
    outcome: 'fail',
    measured: 'follows the cluster, holds 5 of 7 resources; it may not read roles, so every read is passed',
  });
});

it('a hub that has lost the cluster says since when, and why', () => {
  const warning = '199 nodekeeper "this copy is from 2026-11-29T01:17:00Z, 340 s ago: connection refused"';
  expect(hubFinding(metrics({ behindSeconds: 340 }), warning)).toEqual({
    outcome: 'fail',
    measured:
      'has not followed the cluster for 5m40s (this copy is from 2026-11-29T01:17:00Z, 340 s ago: connection refused); ' +
      'reads are of that time, writes are 503; holds 7 of 7 resources',
    next: 'check the link of the site, and the token of the hub',
  });
});

const binding = (role: string, ...subjects: KubeClusterRoleBinding['subjects'] & object): KubeClusterRoleBinding => ({
  ...{ apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRoleBinding', metadata: { name: role } },
  roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
  subjects,
});
const account = (name: string) => ({ kind: 'ServiceAccount', namespace: 'kube-system', name });
const READ = ['get', 'list', 'watch'];
const siteRole = (name: string, resources: string[], resourceNames: string[], verbs = READ): KubeClusterRole => ({
  ...{ apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', metadata: { name } },
  rules: [{ apiGroups: [''], resources, resourceNames, verbs }],
});
const pathOf = (name: string): string => `/api/v1/namespaces/kube-system/serviceaccounts/${name}`;

it('accounts of hubs are those that are bound to a role of hubs', () => {
  const bindings = [
    binding('system:nodekeeper:hub', account('hub'), { kind: 'User', name: 'ada' }),
    binding('system:nodekeeper:site-hub', account('munich')),
    binding('hub-munich', account('munich')),
    binding('view', account('other')),
  ];
  const all = ['nodes', 'nodes/pods', 'nodes/configmaps'];
  const hubs = hubAccounts(bindings, [siteRole('hub-munich', all, ['edge-1', 'edge-2'])]);
  expect(hubs).toEqual([
    { name: 'kube-system/hub', path: pathOf('hub'), nodes: undefined, faults: [] },
    { name: 'User ada', path: undefined, nodes: undefined, faults: [] },
    { name: 'kube-system/munich', path: pathOf('munich'), nodes: ['edge-1', 'edge-2'], faults: [] },
  ]);
  expect(hubsFinding(hubs, new Set())).toEqual({
    outcome: 'ok',
    measured:
      '3 may follow the cluster: kube-system/hub of the whole cluster, User ada of the whole cluster, ' +
      'kube-system/munich of 2 nodes',
  });
  expect(hubsFinding(hubs, new Set([pathOf('hub'), '/api/v1/nodes/edge-2']))).toMatchObject({
    outcome: 'warn',
    measured: expect.stringMatching(
      /; kube-system\/hub: the account does not exist; kube-system\/munich: no Node edge-2$/,
    ),
  });
  expect(hubsFinding(hubs, new Set(), 7).measured).toMatch(
    / of 2 nodes; 7 of their accounts and nodes were not looked up$/,
  );
  expect(hubsFinding([], new Set()).outcome).toBe('notApplicable');
});

it('rights that a hub of one site lacks are named', () => {
  const faultsWith = (...roles: readonly KubeClusterRole[]): readonly string[] => {
    const bindings = ['system:nodekeeper:site-hub', 'one', 'two'].map((role) => binding(role, account('munich')));
    return hubAccounts(bindings, roles)[0]!.faults;
  };
  expect(faultsWith()).toEqual(['no role names the nodes of its site']);
  expect(faultsWith(siteRole('one', ['nodes'], ['edge-1'], ['get']))).toEqual(['no role names the nodes of its site']);
  expect(faultsWith(siteRole('one', ['nodes', 'nodes/pods'], ['edge-1', 'edge-2']))).toEqual([
    'it may not read nodes/configmaps of edge-1, edge-2',
  ]);
  const roles = [
    siteRole('one', ['nodes', 'nodes/configmaps'], ['edge-1', 'edge-2']),
    siteRole('two', ['nodes/pods'], ['edge-2'], ['*']),
  ];
  expect(faultsWith(...roles)).toEqual(['it may not read nodes/pods of edge-1']);
});
