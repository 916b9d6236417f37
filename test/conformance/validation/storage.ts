/**
 * Constraints of PersistentVolumes, their claims, and storage.k8s.io (pkg/apis/core/validation,
 * pkg/apis/storage/validation).
 */
import {
  at,
  type Constraint,
  duplicate,
  type Edits,
  type ExpectedCause,
  forbidden,
  IMMUTABLE,
  invalid,
  leftOut,
  NOT_NEGATIVE,
  on,
  onStatus,
  onUpdate,
  required,
  tooLong,
  unsupported,
} from './constraint.ts';
import { labelSelector } from './workloads.ts';

const MODES = unsupported('supported values: "ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"');
const VOLUME_MODES = unsupported('supported values: "Block", "Filesystem"');
const POSITIVE = invalid('must be greater than zero');
const TOO_MUCH = 'objects have at most 100,000 characters (413)';
const NO_SOURCE = 'no machine of this cluster mounts such volumes: the drivers are CSI drivers';

const modes: Constraint[] = [
  at('spec.accessModes', 'known', ['Other'], MODES),
  at(
    'spec.accessModes',
    'ReadWriteOncePod alone',
    ['ReadWriteOncePod', 'ReadWriteOnce'],
    forbidden('may not use ReadWriteOncePod with other access modes'),
  ),
  at('spec.volumeMode', 'Block or Filesystem', 'Other', VOLUME_MODES),
  at('spec.storageClassName', 'a DNS subdomain', 'A_b', invalid()),
];

const source = (edits: Edits): Edits => ({ 'spec.hostPath': undefined, ...edits });
const csi = { driver: 'ebs.csi.aws.com', volumeHandle: 'v' };
const ofCsi = (field: string, what: string, edits: object, cause: ExpectedCause): Constraint =>
  on(`spec.csi.${field}`, what, source({ 'spec.csi': { ...csi, ...edits } }), cause);
const SECRETS = [
  'controllerPublishSecretRef',
  'controllerExpandSecretRef',
  'nodePublishSecretRef',
  'nodeExpandSecretRef',
];
const affinity = (expression: object): Edits => ({
  'spec.nodeAffinity.required.nodeSelectorTerms': [{ matchExpressions: [expression] }],
});
const TERM = 'spec.nodeAffinity.required.nodeSelectorTerms';

export const volumes: Constraint[] = [
  at('spec.accessModes', 'at least one', [], required()),
  ...modes,
  on('spec.capacity', 'set', { 'spec.capacity': {} }, required()),
  at('spec.capacity', 'storage alone', { cpu: '1' }, unsupported('supported values: "storage"')),
  on('spec.capacity[storage]', 'greater than 0', { 'spec.capacity': { storage: '0' } }, POSITIVE),
  at(
    'spec.persistentVolumeReclaimPolicy',
    'known',
    'Other',
    unsupported('supported values: "Delete", "Recycle", "Retain"'),
  ),
  on('spec', 'a volume type', source({}), required('must specify a volume type')),
  on('spec.csi', 'one volume type', { 'spec.csi': csi }, forbidden('may not specify more than 1 volume type')),
  at('spec.hostPath.path', 'set', '', required()),
  at('spec.hostPath.path', "no '..'", '/a/../b', invalid("must not contain '..'")),
  at('spec.hostPath.type', 'known', 'Other', unsupported()),
  on(
    'spec.persistentVolumeReclaimPolicy',
    'not Recycle for /',
    { 'spec.hostPath.path': '/', 'spec.persistentVolumeReclaimPolicy': 'Recycle' },
    forbidden("may not be 'recycle' for a hostPath mount of '/'"),
  ),
  on('spec.nfs.server', 'set', source({ 'spec.nfs': { path: '/' } }), required()),
  on('spec.nfs.path', 'set', source({ 'spec.nfs': { server: 's' } }), required()),
  on(
    'spec.nfs.path',
    'absolute',
    source({ 'spec.nfs': { server: 's', path: 'a' } }),
    invalid('must be an absolute path'),
  ),
  on('spec.local.path', 'set', source({ 'spec.local': { path: '' } }), required()),
  on('spec.local.path', "no '..'", source({ 'spec.local': { path: '/a/..' } }), invalid("must not contain '..'")),
  on(
    'spec.nodeAffinity',
    'set for local',
    source({ 'spec.local': { path: '/a' } }),
    required('Local volume requires node affinity'),
  ),
  ofCsi('driver', 'set', { driver: '' }, required()),
  ofCsi('driver', 'at most 63 bytes', { driver: 'a'.repeat(64) }, tooLong('may not be more than 63 bytes')),
  ofCsi('driver', 'a DNS subdomain', { driver: 'a_b' }, invalid()),
  ofCsi('volumeHandle', 'set', { volumeHandle: '' }, required()),
  ...SECRETS.flatMap((name): Constraint[] => [
    ofCsi(`${name}.name`, 'set', { [name]: { namespace: 'a' } }, required()),
    ofCsi(`${name}.name`, 'a DNS subdomain', { [name]: { name: 'A_b', namespace: 'a' } }, invalid()),
    ofCsi(`${name}.namespace`, 'set', { [name]: { name: 'a' } }, required()),
    ofCsi(`${name}.namespace`, 'a DNS label', { [name]: { name: 'a', namespace: 'A_b' } }, invalid()),
  ]),
  leftOut('spec.awsElasticBlockStore, fc, iscsi and 16 more', 'their fields', NO_SOURCE),
  on(
    'spec.nodeAffinity.required',
    'set',
    { 'spec.nodeAffinity': {} },
    required('must specify required node constraints'),
  ),
  on(TERM, 'at least one', { [TERM]: [] }, required('must have at least one node selector term')),
  on(
    `${TERM}[0].matchExpressions[0].operator`,
    'known',
    affinity({ key: 'a', operator: 'Like' }),
    invalid('not a valid selector operator'),
  ),
  on(
    `${TERM}[0].matchExpressions[0].values`,
    'set for In',
    affinity({ key: 'a', operator: 'In' }),
    required("must be specified when `operator` is 'In' or 'NotIn'"),
  ),
  on(`${TERM}[0].matchExpressions[0].key`, 'a qualified name', affinity({ key: 'a b', operator: 'Exists' }), invalid()),
  onUpdate(
    'spec.persistentvolumesource',
    'immutable',
    { 'spec.hostPath.path': '/other' },
    forbidden('spec.persistentvolumesource is immutable after creation'),
  ),
  onUpdate('volumeMode', 'immutable', { 'spec.volumeMode': 'Block' }, invalid(IMMUTABLE)),
  onUpdate(
    'nodeAffinity',
    'immutable once it is set',
    { [`${TERM}[0].matchExpressions[0].key`]: 'b' },
    invalid(IMMUTABLE),
    affinity({ key: 'a', operator: 'Exists' }),
  ),
  leftOut('spec.volumeAttributesClassName', 'its form and changes', 'VolumeAttributesClasses are not served'),
];

const CLAIM_TEXT =
  'spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims';
const reference = (field: 'dataSource' | 'dataSourceRef'): Constraint[] => {
  const data = (name: string, what: string, edits: object, cause: ExpectedCause): Constraint =>
    on(`spec.${field}${name}`, what, { [`spec.${field}`]: { apiGroup: 'a.b', kind: 'K', name: 'n', ...edits } }, cause);
  return [
    data('.name', 'set', { name: '' }, required()),
    data('.kind', 'set', { kind: '' }, required()),
    data(
      '',
      'a claim without apiGroup',
      { apiGroup: undefined },
      invalid("must be 'PersistentVolumeClaim' when referencing the default apiGroup"),
    ),
    data('.apiGroup', 'a DNS subdomain', { apiGroup: 'A_b' }, invalid()),
  ];
};

export const claims: Constraint[] = [
  at('spec.accessModes', 'at least one', [], required('at least 1 access mode is required')),
  ...modes,
  ...labelSelector('spec.selector'),
  on('spec.resources[storage]', 'set', { 'spec.resources.requests': {} }, required()),
  on('spec.resources[storage]', 'greater than 0', { 'spec.resources.requests': { storage: '0' } }, POSITIVE),
  ...reference('dataSource'),
  ...reference('dataSourceRef'),
  on(
    'spec.dataSourceRef.namespace',
    'a DNS label',
    { 'spec.dataSourceRef': { apiGroup: 'a.b', kind: 'K', name: 'n', namespace: 'A_b' } },
    invalid(),
  ),
  on(
    'spec',
    'one data source',
    {
      'spec.dataSource': { apiGroup: 'a.b', kind: 'K', name: 'n' },
      'spec.dataSourceRef': { apiGroup: 'a.b', kind: 'K', name: 'o' },
    },
    invalid('must match dataSourceRef'),
  ),
  on(
    'spec',
    'no dataSource beside one of another namespace',
    {
      'spec.dataSource': { apiGroup: 'a.b', kind: 'K', name: 'n' },
      'spec.dataSourceRef': { apiGroup: 'a.b', kind: 'K', name: 'n', namespace: 'o' },
    },
    invalid('may not be specified when dataSourceRef.namespace is specified'),
  ),
  onUpdate('spec', 'immutable', { 'spec.storageClassName': 'other' }, forbidden(CLAIM_TEXT), {
    'spec.storageClassName': 'fast',
  }),
  onUpdate(
    'spec',
    'the size is immutable until it is bound',
    { 'spec.resources.requests.storage': '2Gi' },
    forbidden(CLAIM_TEXT),
  ),
  onUpdate(
    'spec.resources.requests.storage',
    'not less than status.capacity',
    { 'spec.resources.requests.storage': '1Mi' },
    forbidden('field can not be less than status.capacity'),
    { 'status.phase': 'Bound', 'status.capacity': { storage: '1Gi' } },
  ),
  onUpdate('volumeMode', 'immutable', { 'spec.volumeMode': 'Block' }, invalid(IMMUTABLE)),
  onUpdate(
    'metadata.annotations.volume.beta.kubernetes.io/storage-class',
    'immutable',
    { 'metadata.annotations': { 'volume.beta.kubernetes.io/storage-class': 'other' } },
    invalid(IMMUTABLE),
  ),
  onStatus(
    'status.capacity[storage]',
    'at least 0',
    { 'status.capacity': { storage: '-1' } },
    invalid('must be a valid resource quantity'),
  ),
  leftOut(
    'status.allocatedResources, allocatedResourceStatuses',
    'names, states and amounts',
    'no driver of this cluster expands volumes, so the fields are not stored',
  ),
  leftOut('spec.volumeAttributesClassName', 'its form and changes', 'VolumeAttributesClasses are not served'),
];

const TOPOLOGY = 'allowedTopologies[0].matchLabelExpressions';
const topology = (field: string, what: string, expressions: object[], cause: ExpectedCause): Constraint =>
  on(`${TOPOLOGY}[${expressions.length - 1}].${field}`, what, { [TOPOLOGY]: expressions }, cause);
const zone = { key: 'zone', values: ['a'] };

export const storageClasses: Constraint[] = [
  at('provisioner', 'set', '', required()),
  at('provisioner', 'a qualified name', 'a b', invalid()),
  at('parameters', 'keys that are not empty', { '': 'a' }, invalid('field can not be empty.')),
  at(
    'parameters',
    'at most 512',
    Object.fromEntries(Array.from({ length: 513 }, (_, index) => [`a${index}`, 'b'])),
    tooLong('may not be more than 512 bytes'),
  ),
  leftOut('parameters', 'at most 256 KiB', TOO_MUCH),
  at('reclaimPolicy', 'Delete or Retain', 'Recycle', unsupported('supported values: "Delete", "Retain"')),
  at('volumeBindingMode', 'known', 'Other', unsupported('supported values: "Immediate", "WaitForFirstConsumer"')),
  topology('values', 'at least one', [{ key: 'zone', values: [] }], required()),
  topology('values[1]', 'unique', [{ key: 'zone', values: ['a', 'a'] }], duplicate()),
  topology('key', 'a qualified name', [{ key: 'a b', values: ['a'] }], invalid()),
  topology('key', 'unique', [zone, zone], duplicate()),
  on(
    'allowedTopologies[1].matchLabelExpressions',
    'unique',
    { allowedTopologies: [{ matchLabelExpressions: [zone] }, { matchLabelExpressions: [zone] }] },
    duplicate(),
  ),
  onUpdate('parameters', 'immutable', { parameters: { a: 'b' } }, forbidden('updates to parameters are forbidden.')),
  onUpdate('provisioner', 'immutable', { provisioner: 'a.b/c' }, forbidden('updates to provisioner are forbidden.')),
  onUpdate(
    'reclaimPolicy',
    'immutable',
    { reclaimPolicy: 'Retain' },
    forbidden('updates to reclaimPolicy are forbidden.'),
  ),
  onUpdate('volumeBindingMode', 'immutable', { volumeBindingMode: 'WaitForFirstConsumer' }, invalid(IMMUTABLE)),
];

const driver = { name: 'ebs.csi.aws.com', nodeID: 'i-1' };
const ofDriver = (field: string, what: string, edits: object, cause: ExpectedCause): Constraint =>
  on(`spec.drivers[0]${field}`, what, { 'spec.drivers': [{ ...driver, ...edits }] }, cause);

export const csiNodes: Constraint[] = [
  ofDriver('.name', 'set', { name: '' }, required()),
  ofDriver('.name', 'at most 63 bytes', { name: 'a'.repeat(64) }, tooLong('may not be more than 63 bytes')),
  ofDriver('.name', 'a DNS subdomain', { name: 'a_b' }, invalid()),
  on('spec.drivers[1].name', 'unique', { 'spec.drivers': [driver, driver] }, duplicate()),
  ofDriver('.nodeID', 'set', { nodeID: '' }, required()),
  ofDriver('.nodeID', 'at most 256 bytes', { nodeID: 'a'.repeat(257) }, invalid('must be 256 characters or less')),
  ofDriver('.allocatable.count', 'at least 0', { allocatable: { count: -1 } }, invalid(NOT_NEGATIVE)),
  ofDriver('', 'topology keys that are not empty', { topologyKeys: [''] }, required()),
  ofDriver('', 'unique topology keys', { topologyKeys: ['a', 'a'] }, duplicate()),
  ofDriver('', 'topology keys are qualified names', { topologyKeys: ['a b'] }, invalid()),
  onUpdate(
    'spec.drivers',
    'immutable but for allocatable',
    { 'spec.drivers': [{ ...driver, nodeID: 'i-2' }] },
    invalid(IMMUTABLE),
    { 'spec.drivers': [driver] },
  ),
];

const token = (field: string, what: string, requests: object[], cause: ExpectedCause): Constraint =>
  on(`spec.tokenRequests[${requests.length - 1}].${field}`, what, { 'spec.tokenRequests': requests }, cause);

export const csiDrivers: Constraint[] = [
  leftOut(
    'spec.attachRequired, podInfoOnMount, storageCapacity, seLinuxMount',
    'set',
    'they are set to their defaults',
  ),
  at(
    'spec.fsGroupPolicy',
    'known',
    'Other',
    unsupported('supported values: "File", "None", "ReadWriteOnceWithFSType"'),
  ),
  token('audience', 'unique', [{ audience: 'a' }, { audience: 'a' }], duplicate()),
  token(
    'expirationSeconds',
    'at least 600',
    [{ audience: 'a', expirationSeconds: 599 }],
    invalid('may not specify a duration less than 10 minutes'),
  ),
  token(
    'expirationSeconds',
    'at most 2^32',
    [{ audience: 'a', expirationSeconds: 2 ** 32 + 1 }],
    invalid('may not specify a duration larger than 2^32 seconds'),
  ),
  at('spec.volumeLifecycleModes', 'known', ['Other'], unsupported('supported values: "Persistent", "Ephemeral"')),
  at(
    'spec.nodeAllocatableUpdatePeriodSeconds',
    'at least 10',
    9,
    invalid('must be greater than or equal to 10 seconds'),
  ),
  onUpdate('spec.attachedRequired', 'immutable', { 'spec.attachRequired': false }, invalid(IMMUTABLE)),
  onUpdate(
    'spec.volumeLifecycleModes',
    'immutable',
    { 'spec.volumeLifecycleModes': ['Ephemeral'] },
    invalid(IMMUTABLE),
  ),
];

export const storageCapacities: Constraint[] = [
  ...labelSelector('nodeTopology'),
  at('storageClassName', 'a DNS subdomain', 'A_b', invalid()),
  at('capacity', 'at least 0', '-1', invalid(NOT_NEGATIVE)),
  onUpdate('nodeTopology', 'immutable', { nodeTopology: { matchLabels: { a: 'b' } } }, invalid(IMMUTABLE)),
  onUpdate('storageClassName', 'immutable', { storageClassName: 'other' }, invalid(IMMUTABLE)),
];

const SOURCE_TEXT = 'must specify exactly one of inlineVolumeSpec and persistentVolumeName';
const error = (name: string, field: string, what: string, edits: object, cause: ExpectedCause): Constraint =>
  onStatus(`status.${name}.${field}`, what, { [`status.${name}`]: edits }, cause);

export const volumeAttachments: Constraint[] = [
  at('spec.attacher', 'set', '', required()),
  at('spec.attacher', 'at most 63 bytes', 'a'.repeat(64), tooLong('may not be more than 63 bytes')),
  at('spec.attacher', 'a DNS subdomain', 'a_b', invalid()),
  on('spec.source', 'set', { 'spec.source': {} }, required(SOURCE_TEXT)),
  at('spec.source.persistentVolumeName', 'not empty', '', required('must specify non empty persistentVolumeName')),
  at('spec.source.persistentVolumeName', 'a DNS subdomain', 'A_b/', invalid()),
  on('spec.source', 'one of two', { 'spec.source.inlineVolumeSpec': { csi } }, forbidden(SOURCE_TEXT)),
  leftOut('spec.source.inlineVolumeSpec', 'its fields', 'only the migration of volumes of Kubernetes 1.16 writes it'),
  at('spec.nodeName', 'a DNS subdomain', 'A_b', invalid()),
  onUpdate('spec', 'immutable', { 'spec.nodeName': 'other' }, invalid(IMMUTABLE)),
  leftOut('status.attachmentMetadata', 'at most 256 KiB', TOO_MUCH),
  ...['attachError', 'detachError'].flatMap((name): Constraint[] => [
    error(
      name,
      'message',
      'at most 1024 bytes',
      { message: 'a'.repeat(1_025) },
      tooLong('may not be more than 262144 bytes'),
    ),
    error(
      name,
      'errorCode',
      'at least 0',
      { message: '', errorCode: -1 },
      invalid('must be between 0 and 2147483647, inclusive'),
    ),
  ]),
];
