/** Kinds of our own: identities that may sign in as a node, and tokens that create them (docs/security.md). */

import { defined } from '../../defined.ts';
import { ageSince } from '../../kubernetes/age.ts';
import { ageColumn, NONE, nameColumn, textColumn } from '../../kubernetes/columns.ts';
import { freshMetadata, typed, withoutEmpty, withoutNulls } from '../../kubernetes/normal-form.ts';
import { canonicalTime } from '../../kubernetes/time.ts';
import type { ResourceDescriptor } from '../descriptor.ts';
import type { KubeBootstrapToken, KubeNodeIdentity, KubeObject, ObjectMeta } from '../types.ts';
import { BOOTSTRAP_TOKENS, NODE_IDENTITIES } from './resource.ts';
import { validateBootstrapToken, validateNodeIdentity } from './validate.ts';

const common = {
  shortNames: [],
  categories: [],
  subresources: [],
  unconditionalUpdate: false,
  createOnUpdate: false,
  hasGeneration: false,
} as const satisfies Partial<ResourceDescriptor>;

/** The stored metadata: the name and the fields that the server sets. */
function bareMetadata(object: KubeObject): ObjectMeta {
  const { name, uid, creationTimestamp, resourceVersion } = freshMetadata(object.metadata);
  return defined({ name, uid, creationTimestamp, resourceVersion });
}

const identityForm = (object: KubeNodeIdentity): KubeObject => {
  const { keys: _keys, source: _source, ...spec } = withoutNulls(object.spec ?? {});
  return typed(NODE_IDENTITIES.group, NODE_IDENTITIES.version, NODE_IDENTITIES.kind, {
    metadata: bareMetadata(object),
    spec: withoutEmpty(spec, 'nodeLabels'),
  });
};

export const nodeidentities: ResourceDescriptor = {
  ...NODE_IDENTITIES,
  ...common,
  singular: 'nodeidentity',
  listKind: 'NodeIdentityList',
  columns: [
    nameColumn,
    { name: 'Keys', type: 'integer', format: '', description: 'Keys that may sign in.', priority: 0 },
    textColumn('Source', 'How it was enrolled.'),
    ageColumn,
  ],
  row: (object: KubeNodeIdentity, nowMs) => [
    object.metadata.name ?? '',
    (object.spec?.keys ?? []).length,
    object.spec?.source ?? '',
    ageSince(object.metadata.creationTimestamp, nowMs),
  ],
  prepareForCreate: identityForm,
  prepareForUpdate: (_next, old) => old,
  validate: validateNodeIdentity,
};

const tokenForm = (object: KubeBootstrapToken): KubeObject => {
  const given = withoutNulls(object.spec ?? {});
  const { expires } = given;
  const spec = withoutEmpty(
    { uses: 1, ...given, ...(expires === undefined ? {} : { expires: canonicalTime(expires) }) },
    'nodeNamePattern',
    'nodeLabels',
    'reissue',
  );
  return typed(BOOTSTRAP_TOKENS.group, BOOTSTRAP_TOKENS.version, BOOTSTRAP_TOKENS.kind, {
    metadata: bareMetadata(object),
    spec,
    status: { usesLeft: spec.uses },
  });
};

export const bootstraptokens: ResourceDescriptor = {
  ...BOOTSTRAP_TOKENS,
  ...common,
  singular: 'bootstraptoken',
  listKind: 'BootstrapTokenList',
  columns: [
    nameColumn,
    textColumn('Left', 'Machines it still enrols, of how many.'),
    textColumn('Expires', 'When it ends.'),
    textColumn('Nodes', 'Names it enrols.'),
    { name: 'Reissue', type: 'boolean', format: '', description: 'Whether it may take over a name.', priority: 0 },
    ageColumn,
  ],
  row: ({ metadata, spec = {}, status = {} }: KubeBootstrapToken, nowMs) => [
    metadata.name ?? '',
    `${status.usesLeft ?? 0}/${spec.uses ?? 0}`,
    spec.expires || NONE,
    spec.nodeNamePattern || '*',
    spec.reissue === true,
    ageSince(metadata.creationTimestamp, nowMs),
  ],
  prepareForCreate: tokenForm,
  prepareForUpdate: (_next, old) => old,
  validate: validateBootstrapToken,
};
