/**
 * Hubs of sites (docs/hub.md). `hub`: the server that is asked, if it is one: whether it follows the cluster, and what
 * it holds. `hubs`: the accounts that may follow the cluster, and what their rights lack. The cluster stores no contact
 * of a hub, because that would be a write at rest: how far a hub is behind, only itself knows.
 */
import { parseMetrics, type Samples, sampleValue } from '../../console/model/metrics-text.ts';
import type { KubeClusterRole, KubeClusterRoleBinding } from '../../shared/kinds/types.ts';
import { formatAge } from '../../shared/kubernetes/age.ts';
import { type Finding, fail, notApplicable, ok, warn } from './check.ts';
import { type ClusterContext, isForbidden, request, unexpected } from './cluster-checks.ts';

const HUB_METRICS = '/hub/metrics';
const RBAC = '/apis/rbac.authorization.k8s.io/v1';
/** Without these a hub can authorize no user, and passes every read. */
const AUTHORIZE = ['clusterroles', 'clusterrolebindings', 'roles', 'rolebindings'];
/** What a hub is for. */
const MAIN = ['nodes', 'pods'];
const WHOLE_HUB = 'system:nodekeeper:hub';
const SITE_HUB = 'system:nodekeeper:site-hub';
const RIGHTS_NEXT = 'bind its account as in docs/hub.md';
/** Objects that are read for one run: accounts of hubs, and nodes that their roles name. */
const READS_MAX = 50;

export async function checkHub(context: ClusterContext): Promise<Finding> {
  const response = await request(context, HUB_METRICS);
  if (response.status === 404) return notApplicable('the server is the cluster itself, no hub');
  if (isForbidden(response)) {
    return notApplicable(`the server is no hub, or the credential may not read ${HUB_METRICS}`);
  }
  if (response.status !== 200) return unexpected('the metrics of the hub', response);
  const samples = parseMetrics(response.text);
  if (sampleValue(samples, 'nodekeeper_hub_link_up') !== 0) return hubFinding(samples, undefined);
  // A read from the copy says why it is old.
  const { warning } = await request(context, '/api/v1/nodes?limit=1');
  return hubFinding(samples, warning);
}

/** @param warning the Warning header of a read, while the hub does not follow the cluster */
export function hubFinding(samples: Samples, warning: string | undefined): Finding {
  const held = (samples.get('nodekeeper_hub_holds') ?? []).map(({ labels, value }) => ({
    resource: labels['resource'] ?? '',
    isHeld: value === 1,
  }));
  const passed = held.flatMap(({ resource, isHeld }) => (isHeld ? [] : [resource]));
  const numberOf = (name: string): number => sampleValue(samples, `nodekeeper_hub_${name}`) ?? 0;
  const holds = `holds ${held.length - passed.length} of ${held.length} resources`;
  const statuses = numberOf('shown_statuses');
  const shown = statuses === 0 ? '' : `, shows ${statuses} statuses of its site that the cluster does not have`;
  if (numberOf('link_up') === 0) {
    const behind = formatAge(1_000 * numberOf('behind_seconds'));
    const why = warning === undefined ? '' : ` (${warning.replace(/^199 nodekeeper "(.*)"$/, '$1')})`;
    return fail(
      `has not followed the cluster for ${behind}${why}; reads are of that time, writes are 503; ${holds}${shown}`,
      'check the link of the site, and the token of the hub',
    );
  }
  const lacks = (resources: readonly string[]): readonly string[] => resources.filter((each) => passed.includes(each));
  const measured = `follows the cluster, ${holds}${shown}`;
  const unauthorized = lacks(AUTHORIZE);
  if (unauthorized.length > 0) {
    return fail(`${measured}; it may not read ${unauthorized.join(', ')}, so every read is passed`, RIGHTS_NEXT);
  }
  const missing = lacks(MAIN);
  if (missing.length > 0) return warn(`${measured}; it may not read ${missing.join(' and ')}`, RIGHTS_NEXT);
  return ok(passed.length === 0 ? measured : `${measured}; passed are reads of ${passed.join(', ')}`);
}

export interface HubAccount {
  /** As in `kubectl describe clusterrolebinding`: the name, of a service account with its namespace. */
  readonly name: string;
  /** Path of the service account; undefined for a user or a group. */
  readonly path: string | undefined;
  /** Names in its roles for nodes; undefined: it may read the whole cluster. */
  readonly nodes: readonly string[] | undefined;
  readonly faults: readonly string[];
}

export async function checkHubs(context: ClusterContext): Promise<Finding> {
  const [bindings, roles] = await Promise.all([
    request(context, `${RBAC}/clusterrolebindings`),
    request(context, `${RBAC}/clusterroles`),
  ]);
  for (const each of [bindings, roles]) {
    if (isForbidden(each)) return notApplicable('the credential may not read roles and bindings');
    if (each.status !== 200) return unexpected('the list of roles and bindings', each);
  }
  const hubs = hubAccounts(
    (bindings.object as { items: readonly KubeClusterRoleBinding[] }).items,
    (roles.object as { items: readonly KubeClusterRole[] }).items,
  );
  const wanted = hubs.flatMap(({ path, nodes = [] }) => [
    ...(path === undefined ? [] : [path]),
    ...nodes.map((name) => `/api/v1/nodes/${name}`),
  ]);
  const all = new Set(wanted);
  const paths = [...all].slice(0, READS_MAX);
  const answers = await Promise.all(paths.map(async (path) => [path, await request(context, path)] as const));
  const absent = new Set(answers.flatMap(([path, { status }]) => (status === 404 ? [path] : [])));
  return hubsFinding(hubs, absent, all.size - paths.length);
}

/** Who is bound to a role of hubs. */
export function hubAccounts(
  bindings: readonly KubeClusterRoleBinding[],
  roles: readonly KubeClusterRole[],
): readonly HubAccount[] {
  const roleNames = new Map<string, Set<string>>();
  const paths = new Map<string, string | undefined>();
  for (const { roleRef, subjects = [] } of bindings) {
    for (const { kind, name = '', namespace = '' } of subjects) {
      const isAccount = kind === 'ServiceAccount';
      const subject = isAccount ? `${namespace}/${name}` : `${kind} ${name}`;
      paths.set(subject, isAccount ? `/api/v1/namespaces/${namespace}/serviceaccounts/${name}` : undefined);
      roleNames.set(subject, (roleNames.get(subject) ?? new Set()).add(roleRef?.name ?? ''));
    }
  }
  return [...roleNames].flatMap(([name, bound]): HubAccount[] => {
    const path = paths.get(name);
    if (bound.has(WHOLE_HUB)) return [{ name, path, nodes: undefined, faults: [] }];
    if (!bound.has(SITE_HUB)) return [];
    return [{ name, path, ...siteRights(roles.filter(({ metadata }) => bound.has(metadata.name ?? ''))) }];
  });
}

/** A role with names of nodes: its rights apply to each of them. */
function siteRights(roles: readonly KubeClusterRole[]): Pick<HubAccount, 'nodes' | 'faults'> {
  const rules = roles.flatMap(({ rules = [] }) => rules ?? []);
  const namesFor = (resource: string): readonly string[] =>
    rules.flatMap(({ resources = [], verbs = [], resourceNames = [] }) => {
      const isRead = ['get', 'list', 'watch'].every((verb) => verbs?.includes(verb) || verbs?.includes('*'));
      return isRead && resources?.includes(resource) ? (resourceNames ?? []) : [];
    });
  const nodes = [...new Set(namesFor('nodes'))].sort();
  if (nodes.length === 0) return { nodes, faults: ['no role names the nodes of its site'] };
  const faults = ['nodes/pods', 'nodes/configmaps'].flatMap((resource) => {
    const names = new Set(namesFor(resource));
    const missing = nodes.filter((node) => !names.has(node));
    return missing.length === 0 ? [] : [`it may not read ${resource} of ${missing.join(', ')}`];
  });
  return { nodes, faults };
}

/**
 * @param absent paths of accounts and nodes that do not exist
 * @param unread how many accounts and nodes were not looked up
 */
export function hubsFinding(hubs: readonly HubAccount[], absent: ReadonlySet<string>, unread = 0): Finding {
  if (hubs.length === 0) return notApplicable(`no account is bound to ${WHOLE_HUB} or ${SITE_HUB}`);
  const faults: string[] = [];
  const texts = hubs.map(({ name, path, nodes, faults: ofRights }) => {
    if (path !== undefined && absent.has(path)) faults.push(`${name}: the account does not exist`);
    const missing = (nodes ?? []).filter((node) => absent.has(`/api/v1/nodes/${node}`));
    if (missing.length > 0) faults.push(`${name}: no Node ${missing.join(', ')}`);
    faults.push(...ofRights.map((fault) => `${name}: ${fault}`));
    return `${name} of ${nodes === undefined ? 'the whole cluster' : `${nodes.length} nodes`}`;
  });
  const limit = unread === 0 ? '' : `; ${unread} of their accounts and nodes were not looked up`;
  const measured = `${hubs.length} may follow the cluster: ${texts.join(', ')}${limit}`;
  return faults.length === 0 ? ok(measured) : warn(`${measured}; ${faults.join('; ')}`, RIGHTS_NEXT);
}
