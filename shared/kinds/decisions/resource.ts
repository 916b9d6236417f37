import { IDENTITY_GROUP } from '../identities/resource.ts';
import { storedResource } from '../stored-resource.ts';
import type { KubeDecision } from '../types.ts';

const aboutOf = (object: KubeDecision) => object.spec?.about ?? {};
const aboutField =
  (field: 'kind' | 'namespace' | 'name' | 'uid') =>
  (object: KubeDecision): string =>
    aboutOf(object)[field] ?? '';

/** The name of the subject, `namespace/name` for a pod. '' when the subject has another kind. */
export const nameIfAbout =
  (kind: string) =>
  (object: KubeDecision): string => {
    const { kind: aboutKind, namespace = '', name = '' } = aboutOf(object);
    if (aboutKind !== kind) return '';
    return kind === 'Pod' ? `${namespace}/${name}` : name;
  };

export const DECISIONS = storedResource({
  group: IDENTITY_GROUP,
  version: 'v1alpha1',
  resource: 'decisions',
  kind: 'Decision',
  scope: 'cluster',
  // No client may write, not even system:masters: there is no verb for it.
  verbs: ['get', 'list', 'watch'],
  selectableFields: {
    act: (object: KubeDecision) => object.spec?.act ?? '',
    node: nameIfAbout('Node'),
    pod: nameIfAbout('Pod'),
    zone: nameIfAbout('Zone'),
    'about.kind': aboutField('kind'),
    'about.namespace': aboutField('namespace'),
    'about.name': aboutField('name'),
    'about.uid': aboutField('uid'),
  },
});
