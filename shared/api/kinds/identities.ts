/** Kinds of our own: who may sign in as a node, and who may make such identities (docs/security.md). */
import { ageSince } from '../../kube/age.ts';
import { ageColumn, NONE, nameColumn, textColumn } from '../../kube/columns.ts';
import type { ResourceDescriptor } from '../../kube/descriptor.ts';
import { freshMetadata, listOf, recordOf, textOf, typed, withoutEmpty, withoutNulls } from '../../kube/normal-form.ts';
import { IDENTITY_GROUP } from '../../kube/schema/identity.ts';
import { canonicalTime } from '../../kube/time.ts';
import type { KubeObject } from '../../kube/types.ts';
import { validateBootstrapToken, validateNodeIdentity } from '../../kube/validation/identity.ts';

const VERSION = 'v1alpha1';

/** Neither is ever changed by a client: they are made, looked at and deleted. Nothing is told of them in a watch. */
const common = {
  group: IDENTITY_GROUP,
  version: VERSION,
  categories: [],
  namespaced: false,
  verbs: ['create', 'delete', 'get', 'list'],
  subresources: [],
  shards: 1,
  selectableFields: { 'metadata.name': (object: KubeObject) => object.metadata.name ?? '' },
  unconditionalUpdate: false,
  createOnUpdate: false,
  hasGeneration: false,
} as const satisfies Partial<ResourceDescriptor>;

/** Only what is kept: name and what the server sets. */
function bareMetadata(object: KubeObject): KubeObject['metadata'] {
  const { name, uid, creationTimestamp, resourceVersion } = freshMetadata(object.metadata);
  return withoutNulls({ name, uid, creationTimestamp, resourceVersion }) as KubeObject['metadata'];
}

const identityForm = (object: KubeObject): KubeObject => {
  const { keys: _server, source: _too, ...spec } = recordOf(withoutNulls(object.spec));
  return typed(IDENTITY_GROUP, VERSION, 'NodeIdentity', {
    metadata: bareMetadata(object),
    spec: withoutEmpty(spec, 'nodeLabels'),
  });
};

export const nodeidentities: ResourceDescriptor = {
  ...common,
  resource: 'nodeidentities',
  singular: 'nodeidentity',
  kind: 'NodeIdentity',
  listKind: 'NodeIdentityList',
  shortNames: [],
  columns: [
    nameColumn,
    { name: 'Keys', type: 'integer', format: '', description: 'Keys that may sign in.', priority: 0 },
    textColumn('Source', 'How it was enrolled.'),
    ageColumn,
  ],
  row: (object, nowMs) => [
    object.metadata.name ?? '',
    listOf(object.spec?.['keys']).length,
    textOf(object.spec?.['source']),
    ageSince(object.metadata.creationTimestamp, nowMs),
  ],
  prepareForCreate: identityForm,
  prepareForUpdate: (_next, old) => old,
  validate: validateNodeIdentity,
};

const tokenForm = (object: KubeObject): KubeObject => {
  const given = recordOf(withoutNulls(object.spec));
  const { expires } = given;
  const spec = withoutEmpty(
    { uses: 1, ...given, ...(typeof expires === 'string' ? { expires: canonicalTime(expires) } : {}) },
    'nodeNamePattern',
    'nodeLabels',
    'reissue',
  );
  return typed(IDENTITY_GROUP, VERSION, 'BootstrapToken', {
    metadata: bareMetadata(object),
    spec,
    status: { usesLeft: spec['uses'] },
  });
};

export const bootstraptokens: ResourceDescriptor = {
  ...common,
  resource: 'bootstraptokens',
  singular: 'bootstraptoken',
  kind: 'BootstrapToken',
  listKind: 'BootstrapTokenList',
  shortNames: [],
  columns: [
    nameColumn,
    textColumn('Left', 'Machines it still enrols, of how many.'),
    textColumn('Expires', 'When it ends.'),
    textColumn('Nodes', 'Names it enrols.'),
    { name: 'Reissue', type: 'boolean', format: '', description: 'Whether it may take over a name.', priority: 0 },
    ageColumn,
  ],
  row: ({ metadata, spec = {}, status = {} }, nowMs) => [
    metadata.name ?? '',
    `${String(status['usesLeft'] ?? 0)}/${String(spec['uses'] ?? 0)}`,
    textOf(spec['expires']) || NONE,
    textOf(spec['nodeNamePattern']) || '*',
    spec['reissue'] === true,
    ageSince(metadata.creationTimestamp, nowMs),
  ],
  prepareForCreate: tokenForm,
  prepareForUpdate: (_next, old) => old,
  validate: validateBootstrapToken,
};
