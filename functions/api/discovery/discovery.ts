/**
 * Discovery documents, derived from the registry: /version, /api, /apis, /api/v1, /apis/<group>/<version>, and the
 * aggregated form of /api and /apis, which is one document each.
 */

import { createHash } from 'node:crypto';
import { mediaRanges } from '../../../shared/api/response-body.ts';
import { compareVersions } from '../../../shared/kinds/custom-resources/compare-versions.ts';
import type { ResourceDescriptor } from '../../../shared/kinds/descriptor.ts';
import { KUBERNETES_MINOR, KUBERNETES_VERSION } from '../../../shared/kinds/generated/version.ts';
import { resources } from '../../../shared/kinds/registry.ts';
import { apiVersionOf } from '../../../shared/kubernetes/normal-form.ts';
import { createdOnly } from './created-only.ts';

export interface BuildInfo {
  /** Version of nodekeeper, such as 0.1.0. */
  readonly version: string;
  readonly gitCommit?: string;
  /** RFC 3339. */
  readonly buildDate?: string;
  /** In Go's form, such as linux/arm64. */
  readonly platform?: string;
}

const NO_COMMIT = '0'.repeat(40);

export const versionDocument = (build: BuildInfo): Record<string, string> => ({
  major: '1',
  minor: KUBERNETES_MINOR,
  gitVersion: `${KUBERNETES_VERSION}-nodekeeper.${build.version}`,
  // Upstream's tests of clients want hexadecimal digits.
  gitCommit: build.gitCommit ?? NO_COMMIT,
  gitTreeState: 'clean',
  buildDate: build.buildDate ?? '1970-01-01T00:00:00Z',
  goVersion: '',
  compiler: '',
  platform: build.platform ?? 'linux/arm64',
});

/** Groups in order of preference: clients use the first group that has a name. */
const GROUP_ORDER = [
  '',
  'apiregistration.k8s.io',
  'apps',
  'events.k8s.io',
  'authentication.k8s.io',
  'authorization.k8s.io',
  'autoscaling',
  'batch',
  'certificates.k8s.io',
  'networking.k8s.io',
  'policy',
  'rbac.authorization.k8s.io',
  'storage.k8s.io',
  'admissionregistration.k8s.io',
  'apiextensions.k8s.io',
  'scheduling.k8s.io',
  'coordination.k8s.io',
  'node.k8s.io',
  'discovery.k8s.io',
  'metrics.k8s.io',
];

interface GroupVersion {
  readonly group: string;
  readonly version: string;
}

/** What discovery lists of a kind. */
export type DiscoveredResource = Pick<
  ResourceDescriptor,
  | 'group'
  | 'version'
  | 'resource'
  | 'kind'
  | 'namespaced'
  | 'verbs'
  | 'singular'
  | 'shortNames'
  | 'categories'
  | 'subresources'
> & {
  /** Of custom kinds. */
  readonly storageVersion?: string;
};

/** Kinds that are served: those of the registry, and those that definitions add. */
export interface Discovered {
  readonly offered: readonly GroupVersion[];
  readonly resources: readonly DiscoveredResource[];
}

/** @param customs ordered by version within a group */
export function discovered(customs: readonly DiscoveredResource[]): Discovered {
  const all = [...resources, ...customs];
  const seen = new Map<string, GroupVersion>();
  for (const each of [...all, ...createdOnly]) {
    seen.set(`${each.group}/${each.version}`, { group: each.group, version: each.version });
  }
  const rank = (group: string): number =>
    GROUP_ORDER.includes(group) ? GROUP_ORDER.indexOf(group) : GROUP_ORDER.length;
  const offered = [...seen.values()].sort(
    (left, right) =>
      rank(left.group) - rank(right.group) ||
      compareText(left.group, right.group) ||
      // Versions of one group may come from several definitions. Those of a built-in group have their order.
      (customs.some(({ group }) => group === left.group) ? compareVersions(left.version, right.version) : 0),
  );
  return { offered, resources: all };
}

function compareText(left: string, right: string): number {
  if (left === right) return 0;
  return left < right ? -1 : 1;
}

/** GET /api */
export const apiVersionsDocument = ({ offered }: Discovered, serverAddress: string): Record<string, unknown> => ({
  kind: 'APIVersions',
  versions: offered.filter((each) => each.group === '').map((each) => each.version),
  serverAddressByClientCIDRs: [{ clientCIDR: '0.0.0.0/0', serverAddress }],
});

const groupDocument = ({ offered }: Discovered, group: string): Record<string, unknown> => {
  const versions = offered
    .filter((each) => each.group === group)
    .map((each) => ({ groupVersion: apiVersionOf(each), version: each.version }));
  return { name: group, versions, preferredVersion: versions[0] };
};

const namedGroups = ({ offered }: Discovered): string[] =>
  [...new Set(offered.map((each) => each.group))].filter((group) => group !== '');

/** GET /apis */
export const apiGroupListDocument = (served: Discovered): Record<string, unknown> => ({
  kind: 'APIGroupList',
  apiVersion: 'v1',
  groups: namedGroups(served).map((group) => groupDocument(served, group)),
});

/** GET /apis/<group>; undefined when there is no such group. */
export const apiGroupDocument = (served: Discovered, group: string): Record<string, unknown> | undefined =>
  namedGroups(served).includes(group)
    ? { kind: 'APIGroup', apiVersion: 'v1', ...groupDocument(served, group) }
    : undefined;

const HASH_BYTES = 8;

/** Changes with the version that objects are stored in. Source: apiserver endpoints/discovery/storageversionhash.go. */
const storageVersionHash = ({ group, storageVersion, kind }: DiscoveredResource): string =>
  createHash('sha256').update(`${group}/${storageVersion}/${kind}`).digest().subarray(0, HASH_BYTES).toString('base64');

const resourceEntries = (descriptor: DiscoveredResource): Record<string, unknown>[] => [
  {
    name: descriptor.resource,
    singularName: descriptor.singular,
    namespaced: descriptor.namespaced,
    kind: descriptor.kind,
    verbs: descriptor.verbs,
    ...(descriptor.shortNames.length === 0 ? {} : { shortNames: descriptor.shortNames }),
    ...(descriptor.categories.length === 0 ? {} : { categories: descriptor.categories }),
    ...(descriptor.storageVersion === undefined ? {} : { storageVersionHash: storageVersionHash(descriptor) }),
  },
  ...descriptor.subresources.map((sub) => ({
    name: `${descriptor.resource}/${sub.name}`,
    singularName: '',
    namespaced: descriptor.namespaced,
    ...(sub.group === undefined ? {} : { group: sub.group }),
    ...(sub.version === undefined ? {} : { version: sub.version }),
    kind: sub.kind ?? descriptor.kind,
    verbs: sub.verbs,
  })),
];

/** GET /api/v1 and /apis/<group>/<version>; undefined when it is not served. */
export function apiResourceListDocument(
  { offered, resources }: Discovered,
  group: string,
  version: string,
): Record<string, unknown> | undefined {
  const isOurs = (each: GroupVersion): boolean => each.group === group && each.version === version;
  if (!offered.some(isOurs)) return undefined;
  return {
    kind: 'APIResourceList',
    apiVersion: 'v1',
    groupVersion: apiVersionOf({ group, version }),
    resources: [
      ...resources.filter(isOurs).flatMap(resourceEntries),
      ...createdOnly.filter(isOurs).map((each) => ({
        name: each.resource,
        singularName: each.singular,
        namespaced: each.namespaced,
        kind: each.kind,
        verbs: each.verbs,
      })),
    ],
  };
}

export type AggregatedVersion = 'v2' | 'v2beta1';

/** Which aggregated form a client accepts on /api and /apis; undefined: the plain documents. */
export function wantsAggregatedDiscovery(accept: string | undefined): AggregatedVersion | undefined {
  for (const range of mediaRanges(accept)) {
    if (range.type !== 'application/json') continue;
    const { g, v, as } = range.parameters;
    if (as === undefined) return undefined;
    if (as !== 'APIGroupDiscoveryList' || g !== 'apidiscovery.k8s.io') continue;
    if (v === 'v2' || v === 'v2beta1') return v;
  }
  return undefined;
}

export const aggregatedContentType = (version: AggregatedVersion): string =>
  `application/json;g=apidiscovery.k8s.io;v=${version};as=APIGroupDiscoveryList`;

const aggregatedResource = (descriptor: DiscoveredResource): Record<string, unknown> => ({
  resource: descriptor.resource,
  responseKind: { group: descriptor.group, version: descriptor.version, kind: descriptor.kind },
  scope: descriptor.namespaced ? 'Namespaced' : 'Cluster',
  singularResource: descriptor.singular,
  verbs: descriptor.verbs,
  ...(descriptor.shortNames.length === 0 ? {} : { shortNames: descriptor.shortNames }),
  ...(descriptor.categories.length === 0 ? {} : { categories: descriptor.categories }),
  ...(descriptor.subresources.length === 0
    ? {}
    : {
        subresources: descriptor.subresources.map((sub) => ({
          subresource: sub.name,
          responseKind: {
            group: sub.group ?? descriptor.group,
            version: sub.version ?? descriptor.version,
            kind: sub.kind ?? descriptor.kind,
          },
          verbs: sub.verbs,
        })),
      }),
});

function aggregatedGroup({ offered, resources }: Discovered, group: string): Record<string, unknown> {
  const versions = offered.filter((each) => each.group === group);
  return {
    metadata: { name: group === '' ? undefined : group, creationTimestamp: null },
    versions: versions.map(({ version }) => ({
      version,
      freshness: 'Current',
      resources: [
        ...resources.filter((each) => each.group === group && each.version === version).map(aggregatedResource),
        ...createdOnly
          .filter((each) => each.group === group && each.version === version)
          .map((each) => ({
            resource: each.resource,
            responseKind: { group, version, kind: each.kind },
            scope: each.namespaced ? 'Namespaced' : 'Cluster',
            singularResource: each.singular,
            verbs: each.verbs,
          })),
      ],
    })),
  };
}

/** GET /api (`core`) and GET /apis (`named`) for a client that accepts the aggregated form. */
export const aggregatedDiscoveryDocument = (
  served: Discovered,
  which: 'core' | 'named',
  version: AggregatedVersion,
): Record<string, unknown> => ({
  kind: 'APIGroupDiscoveryList',
  apiVersion: `apidiscovery.k8s.io/${version}`,
  metadata: {},
  items: (which === 'core' ? [''] : namedGroups(served)).map((group) => aggregatedGroup(served, group)),
});
