/**
 * What the identity of a machine is not refused: every resource, verb and subresource, with the tricks of paths and
 * queries that somebody might try, against objects that belong to another node.
 */
import { resources } from '../../shared/kinds/registry.ts';
import { APPLY, type ApiInMemory, JSON_PATCH, MERGE } from './api-in-memory.ts';

interface SweptResource {
  readonly base: string;
  readonly resource: string;
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  readonly subresources: readonly string[];
}

const WRITES = ['', '?dryRun=All', '?fieldManager=x&force=true'];
const METHODS: readonly (readonly [string, string?])[] = [
  ['GET'],
  ['HEAD'],
  ['POST', 'application/json'],
  ['PUT', 'application/json'],
  ['PATCH', MERGE],
  ['PATCH', JSON_PATCH],
  ['PATCH', APPLY],
  ['DELETE'],
  ['OPTIONS'],
  ['TRACE'],
  ['PROPFIND'],
];
const REFUSED = new Set([401, 403, 404, 405]);

function readsBy(self: string, victim: string): string[] {
  const own = (field: string) => `fieldSelector=${field}%3D${self}`;
  return [
    '',
    '?watch=1&timeoutSeconds=1',
    '?limit=1',
    `?${own('spec.nodeName')}`,
    `?${own('metadata.name')}`,
    `?${own('spec.nodeName')},spec.nodeName%3D${victim}`,
    `?${own('metadata.name')}&fieldSelector=`,
    `?fieldSelector=&${own('metadata.name')}`,
  ];
}

function sweptResources(nameOf: (resource: string) => string): SweptResource[] {
  const namespaceOf = (resource: string, namespaced: boolean): string =>
    namespaced ? (resource === 'leases' ? 'kube-node-lease' : 'default') : '';
  const served = resources.map(({ group, version, resource, kind, namespaced, subresources }) => ({
    base: group === '' ? `/api/${version}` : `/apis/${group}/${version}`,
    resource,
    kind,
    namespace: namespaceOf(resource, namespaced),
    name: nameOf(resource),
    subresources: subresources.map(({ name }) => name),
  }));
  return served;
}

/** Lines `METHOD group resource: code`, sorted; the many spellings of one request are one line. */
export async function notRefused(
  api: ApiInMemory,
  machine: { readonly token: string; readonly nodeName: string },
  victim: { readonly nodeName: string; readonly nameOf: (resource: string) => string },
): Promise<{ readonly tried: number; readonly lines: readonly string[] }> {
  const headers = { authorization: `Bearer ${machine.token}` };
  const lines = new Set<string>();
  let tried = 0;
  for (const { base, resource, kind, namespace, name, subresources } of sweptResources(victim.nameOf)) {
    const all = `${base}${namespace === '' ? '' : `/namespaces/${namespace}`}/${resource}`;
    const places: readonly (readonly [string, string])[] = [
      [all, resource],
      [`${all}/${name}`, `${resource} of another`],
      [`${base}/${resource}`, `${resource} of all namespaces`],
      [`${base}/watch/${resource}`, `watch/${resource}`],
      ...subresources.map((sub) => [`${all}/${name}/${sub}`, `${resource}/${sub} of another`] as const),
    ];
    const object = {
      apiVersion: base.replace(/^\/apis?\//, ''),
      kind,
      metadata: { name, ...(namespace === '' ? {} : { namespace }), labels: { x: 'y' } },
    };
    for (const [path, place] of places) {
      for (const [method, contentType] of METHODS) {
        for (const query of method === 'GET' ? readsBy(machine.nodeName, victim.nodeName) : WRITES) {
          const hasBody = contentType !== undefined;
          const body = contentType === JSON_PATCH ? [{ op: 'add', path: '/metadata/labels/x', value: 'y' }] : object;
          const { code } = await api.send(method, `${path}${query}`, {
            headers,
            ...(hasBody ? { body, contentType } : {}),
          });
          tried += 1;
          if (!REFUSED.has(code))
            lines.add(`${method} ${place.replace(resource, `${resource}${groupOf(base)}`)}: ${code}`);
        }
      }
    }
  }
  return { tried, lines: [...lines].toSorted() };
}

const groupOf = (base: string): string => {
  const [, , group, version] = base.split('/');
  return version === undefined ? '' : `.${group}`;
};
