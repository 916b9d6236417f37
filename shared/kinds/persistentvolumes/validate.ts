/** PersistentVolume, PersistentVolumeClaim, and the kinds of storage.k8s.io around them. */

import {
  duplicate,
  errorsAt,
  forbiddenField,
  IMMUTABLE,
  immutable,
  invalidValue,
  nonNegative,
  notSupported,
  oneOf,
  optionalAt,
  required,
  requiredAt,
  sameJson,
  tooLong,
} from '../../kubernetes/causes.ts';
import { amountCauses, compareQuantities, readAmount } from '../../kubernetes/quantity.ts';
import { validateSelector } from '../../kubernetes/selectors.ts';
import type { Cause } from '../../kubernetes/status.ts';
import {
  byteLength,
  labelErrors,
  qualifiedNameErrors,
  subdomainErrors,
  subdomainName,
  validateObjectMetadata,
} from '../../kubernetes/validate-metadata.ts';
import { validateNodeSelector } from '../pods/validate-scheduling.ts';
import { validateBacksteps, validateHostPath, validateTokenSeconds } from '../pods/validate-volumes.ts';
import type {
  CSIPersistentVolumeSource,
  KubeCSIDriver,
  KubeCSINode,
  KubeCSIStorageCapacity,
  KubePersistentVolume,
  KubePersistentVolumeClaim,
  KubeStorageClass,
  PersistentVolumeClaimSpec,
  PersistentVolumeSpec,
} from '../types.ts';
import { CLASS_ANNOTATION } from './annotations.ts';

/** Longest name of a driver. */
const DRIVER_BYTES_MAX = 63;
const CLUSTER_RULES = { namespaced: false, name: subdomainName };
const NAMESPACE_RULES = { namespaced: true, name: subdomainName };

const ACCESS_MODES = ['ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOnce', 'ReadWriteOncePod'];
const RECLAIM_POLICIES = ['Delete', 'Recycle', 'Retain'];
const VOLUME_MODES = ['Block', 'Filesystem'];
const BINDING_MODES = ['Immediate', 'WaitForFirstConsumer'];

const validateModes = (modes: readonly string[] = [], detail = ''): Cause[] => {
  const field = 'spec.accessModes';
  if (modes.length === 0) return [required(field, detail)];
  const causes = modes.flatMap((mode) => oneOf(field, mode, ACCESS_MODES));
  const others = modes.some((mode) => mode !== 'ReadWriteOncePod' && ACCESS_MODES.includes(mode));
  return others && modes.includes('ReadWriteOncePod')
    ? [...causes, forbiddenField(field, 'may not use ReadWriteOncePod with other access modes')]
    : causes;
};

/** The amount must be greater than zero. */
function validateSize(field: string, text: unknown): Cause[] {
  const { causes, amount } = readAmount(text, field);
  return amount !== undefined && amount.nanos <= 0n ? [invalidValue(field, text, 'must be greater than zero')] : causes;
}

/** Name of a CSI driver. */
export function driverCauses(field: string, name: string): Cause[] {
  const causes = name === '' ? [required(field)] : [];
  if (byteLength(name) > DRIVER_BYTES_MAX) causes.push(tooLong(field, DRIVER_BYTES_MAX));
  return [...causes, ...errorsAt(field, name, (text) => subdomainErrors(text.toLowerCase()))];
}

const SECRETS = [
  'controllerPublishSecretRef',
  'controllerExpandSecretRef',
  'nodePublishSecretRef',
  'nodeExpandSecretRef',
] as const;

const validateCsi = (source: CSIPersistentVolumeSource, field: string): Cause[] => [
  ...driverCauses(`${field}.driver`, source.driver ?? ''),
  ...((source.volumeHandle ?? '') === '' ? [required(`${field}.volumeHandle`)] : []),
  ...SECRETS.flatMap((name) => {
    const secret = source[name];
    if (secret === undefined) return [];
    return [
      ...requiredAt(`${field}.${name}.name`, secret.name, subdomainErrors),
      ...requiredAt(`${field}.${name}.namespace`, secret.namespace, labelErrors),
    ];
  }),
];

/** The sources that CSI drivers and local volumes have. Others are stored as they are: nothing here mounts them. */
function validateVolumeSource(spec: PersistentVolumeSpec, first: string): Cause[] {
  const { hostPath = {}, nfs = {}, local = {}, csi = {} } = spec;
  const field = `spec.${first}`;
  switch (first) {
    case 'hostPath':
      return validateHostPath(hostPath, field);
    case 'csi':
      return validateCsi(csi, field);
    case 'nfs': {
      const { server = '', path = '' } = nfs;
      return [
        ...(server === '' ? [required(`${field}.server`)] : []),
        ...(path === '' ? [required(`${field}.path`)] : []),
        ...(path.startsWith('/') ? [] : [invalidValue(`${field}.path`, path, 'must be an absolute path')]),
      ];
    }
    case 'local': {
      const { path = '' } = local;
      return [
        ...(path === '' ? [required(`${field}.path`)] : validateBacksteps(`${field}.path`, path)),
        ...(spec.nodeAffinity === undefined
          ? [required('spec.nodeAffinity', 'Local volume requires node affinity')]
          : []),
      ];
    }
    default:
      return [];
  }
}

/** Fields of the spec of a volume that are not its source. */
const VOLUME_FIELDS = new Set([
  'capacity',
  'accessModes',
  'claimRef',
  'persistentVolumeReclaimPolicy',
  'storageClassName',
  'mountOptions',
  'volumeMode',
  'nodeAffinity',
  'volumeAttributesClassName',
]);

export function validatePersistentVolume(
  volume: KubePersistentVolume,
  old: KubePersistentVolume | undefined,
  subresource: string,
): Cause[] {
  const causes = validateObjectMetadata(volume, old, CLUSTER_RULES);
  if (subresource === 'status') return causes;
  const spec = volume.spec ?? {};
  const sourceOf = (of: object = {}) => Object.entries(of).filter(([key]) => !VOLUME_FIELDS.has(key));
  const { capacity = {}, nodeAffinity, persistentVolumeReclaimPolicy: reclaim } = spec;
  causes.push(...validateModes(spec.accessModes));
  const resources = Object.keys(capacity);
  if (resources.length === 0) causes.push(required('spec.capacity'));
  if (resources.length > 1 || capacity['storage'] === undefined) {
    causes.push(notSupported('spec.capacity', capacity, ['storage']));
  }
  for (const [name, amount] of Object.entries(capacity)) causes.push(...validateSize(`spec.capacity[${name}]`, amount));
  if (nodeAffinity !== undefined) {
    const field = 'spec.nodeAffinity.required';
    if (nodeAffinity.required === undefined) causes.push(required(field, 'must specify required node constraints'));
    else causes.push(...validateNodeSelector(nodeAffinity.required.nodeSelectorTerms ?? [], field));
  }
  const names = sourceOf(spec).map(([name]) => name);
  const [first, ...more] = [
    ...names.filter((name) => name === 'hostPath'),
    ...names.filter((name) => name !== 'hostPath'),
  ];
  if (first === undefined) causes.push(required('spec', 'must specify a volume type'));
  else causes.push(...validateVolumeSource(spec, first));
  for (const name of more) causes.push(forbiddenField(`spec.${name}`, 'may not specify more than 1 volume type'));
  causes.push(
    ...oneOf('spec.persistentVolumeReclaimPolicy', reclaim, RECLAIM_POLICIES),
    ...optionalAt('spec.storageClassName', spec.storageClassName, subdomainErrors),
    ...oneOf('spec.volumeMode', spec.volumeMode, VOLUME_MODES),
  );
  if (reclaim === 'Recycle' && /^\/+$/.test(spec.hostPath?.path ?? '')) {
    const why = "may not be 'recycle' for a hostPath mount of '/'";
    causes.push(forbiddenField('spec.persistentVolumeReclaimPolicy', why));
  }
  if (old === undefined) return causes;
  if (!sameJson(Object.fromEntries(sourceOf(spec)), Object.fromEntries(sourceOf(old.spec)))) {
    causes.push(
      forbiddenField('spec.persistentvolumesource', 'spec.persistentvolumesource is immutable after creation'),
    );
  }
  // Upstream leaves out "spec" in these paths.
  causes.push(...immutable('volumeMode', spec.volumeMode, old.spec?.volumeMode));
  const fixed = old.spec?.nodeAffinity;
  return fixed === undefined ? causes : [...causes, ...immutable('nodeAffinity', nodeAffinity, fixed)];
}

function isLess(left: string | undefined, right: string | undefined): boolean {
  const [{ amount: one }, { amount: other }] = [readAmount(left, ''), readAmount(right, '')];
  return one !== undefined && other !== undefined && compareQuantities(one, other) < 0;
}

type DataSource = NonNullable<PersistentVolumeClaimSpec['dataSourceRef']>;

function validateDataSource(source: DataSource | undefined, field: string): Cause[] {
  if (source === undefined) return [];
  const { apiGroup = '', kind = '', name = '', namespace } = source;
  return [
    ...(name === '' ? [required(`${field}.name`)] : []),
    ...(kind === '' ? [required(`${field}.kind`)] : []),
    ...(apiGroup === '' && kind !== 'PersistentVolumeClaim'
      ? [invalidValue(field, kind, "must be 'PersistentVolumeClaim' when referencing the default apiGroup")]
      : []),
    ...optionalAt(`${field}.apiGroup`, apiGroup, subdomainErrors),
    ...optionalAt(`${field}.namespace`, namespace, labelErrors),
  ];
}

function validateDataSources({ dataSource, dataSourceRef }: PersistentVolumeClaimSpec): Cause[] {
  const causes = [
    ...validateDataSource(dataSource, 'spec.dataSource'),
    ...validateDataSource(dataSourceRef, 'spec.dataSourceRef'),
  ];
  if (dataSource === undefined || dataSourceRef === undefined) return causes;
  const { namespace = '', ...reference } = dataSourceRef;
  if (namespace === '' && sameJson(dataSource, reference)) return causes;
  const why =
    namespace === '' ? 'must match dataSourceRef' : 'may not be specified when dataSourceRef.namespace is specified';
  return [...causes, invalidValue('spec', 'spec.dataSource', why)];
}

const CLAIM_FIXED =
  'spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims';

export function validatePersistentVolumeClaim(
  claim: KubePersistentVolumeClaim,
  old: KubePersistentVolumeClaim | undefined,
  subresource: string,
): Cause[] {
  const causes = validateObjectMetadata(claim, old, NAMESPACE_RULES);
  if (subresource === 'status') {
    const amounts = Object.entries(claim.status?.capacity ?? {});
    return [
      ...causes,
      ...amounts.flatMap(([name, text]) => {
        const field = `status.capacity[${name}]`;
        const { causes: malformed, amount } = readAmount(text, field);
        return amount !== undefined && amount.nanos < 0n
          ? [invalidValue(field, text, 'must be a valid resource quantity')]
          : malformed;
      }),
    ];
  }
  const spec = claim.spec ?? {};
  const size = spec.resources?.requests?.['storage'];
  causes.push(
    ...validateModes(spec.accessModes, 'at least 1 access mode is required'),
    ...validateSelector(spec.selector, 'spec.selector'),
    ...(size === undefined ? [required('spec.resources[storage]')] : validateSize('spec.resources[storage]', size)),
    ...optionalAt('spec.storageClassName', spec.storageClassName, subdomainErrors),
    ...oneOf('spec.volumeMode', spec.volumeMode, VOLUME_MODES),
    ...validateDataSources(spec),
  );
  if (old === undefined) return causes;
  const [annotation, oldAnnotation] = [claim, old].map(
    ({ metadata }) => metadata.annotations?.[CLASS_ANNOTATION] ?? '',
  );
  if (annotation !== oldAnnotation) {
    causes.push(invalidValue(`metadata.annotations.${CLASS_ANNOTATION}`, annotation, IMMUTABLE));
  }
  const isBound = claim.status?.phase === 'Bound';
  const before = old.spec?.resources?.requests?.['storage'];
  // A larger size that the volume never got can be reduced again. A volume itself never shrinks.
  const capacity = old.status?.capacity?.['storage'];
  if (capacity !== undefined && isLess(size, before) && !isLess(capacity, size)) {
    causes.push(forbiddenField('spec.resources.requests.storage', 'field can not be less than status.capacity'));
  }
  // A binder sets the name of the volume, and a claim without a class may get one.
  const fixed = ({ resources, volumeName, storageClassName, ...rest }: PersistentVolumeClaimSpec = {}) => ({
    ...rest,
    ...(isBound ? {} : { resources }),
    ...((old.spec?.volumeName ?? '') === '' ? {} : { volumeName }),
    ...(old.spec?.storageClassName === undefined ? {} : { storageClassName }),
  });
  if (!sameJson(fixed(spec), fixed(old.spec))) causes.push(forbiddenField('spec', CLAIM_FIXED));
  return [...causes, ...immutable('volumeMode', spec.volumeMode, old.spec?.volumeMode)];
}

const PARAMETERS_MAX = 512;

function validateParameters(parameters: Readonly<Record<string, string>> = {}): Cause[] {
  const keys = Object.keys(parameters);
  if (keys.length > PARAMETERS_MAX) return [tooLong('parameters', PARAMETERS_MAX)];
  return keys.includes('') ? [invalidValue('parameters', '', 'field can not be empty.')] : [];
}

function validateTopologies({ allowedTopologies = [] }: KubeStorageClass): Cause[] {
  const terms = new Set<string>();
  return allowedTopologies.flatMap(({ matchLabelExpressions: expressions = [] }, index) => {
    const field = `allowedTopologies[${index}].matchLabelExpressions`;
    const keys = new Set<string>();
    const causes = expressions.flatMap(({ key = '', values = [] }, at): Cause[] => {
      const path = `${field}[${at}]`;
      const seen = new Set<string>();
      const twice = values.flatMap((value, position) => {
        const isSeen = seen.has(value);
        seen.add(value);
        return isSeen ? [duplicate(`${path}.values[${position}]`, value)] : [];
      });
      const isKeySeen = keys.has(key);
      keys.add(key);
      return [
        ...(values.length === 0 ? [required(`${path}.values`)] : twice),
        ...errorsAt(`${path}.key`, key, qualifiedNameErrors),
        ...(isKeySeen ? [duplicate(`${path}.key`, key)] : []),
      ];
    });
    const term = JSON.stringify(expressions.map(({ key, values = [] }) => [key, [...values].sort()]).sort());
    const isSeen = terms.has(term);
    terms.add(term);
    return isSeen ? [...causes, duplicate(field, '')] : causes;
  });
}

export function validateStorageClass(storage: KubeStorageClass, old: KubeStorageClass | undefined): Cause[] {
  const causes = validateObjectMetadata(storage, old, CLUSTER_RULES);
  if (old !== undefined) {
    if (!sameJson(storage.parameters, old.parameters)) {
      causes.push(forbiddenField('parameters', 'updates to parameters are forbidden.'));
    }
    if (storage.provisioner !== old.provisioner) {
      causes.push(forbiddenField('provisioner', 'updates to provisioner are forbidden.'));
    }
    if (storage.reclaimPolicy !== old.reclaimPolicy) {
      causes.push(forbiddenField('reclaimPolicy', 'updates to reclaimPolicy are forbidden.'));
    }
    return [...causes, ...immutable('volumeBindingMode', storage.volumeBindingMode, old.volumeBindingMode)];
  }
  return [
    ...causes,
    ...requiredAt('provisioner', storage.provisioner, (name) => qualifiedNameErrors(name.toLowerCase())),
    ...validateParameters(storage.parameters),
    ...validateTopologies(storage),
    ...oneOf('reclaimPolicy', storage.reclaimPolicy, ['Delete', 'Retain']),
    ...oneOf('volumeBindingMode', storage.volumeBindingMode, BINDING_MODES),
  ];
}

const PERIOD_SECONDS_MIN = 10;

export function validateCsiDriver(driver: KubeCSIDriver, old: KubeCSIDriver | undefined): Cause[] {
  const { tokenRequests = [], nodeAllocatableUpdatePeriodSeconds: period, ...spec } = driver.spec ?? {};
  const causes = [
    ...validateObjectMetadata(driver, old, CLUSTER_RULES),
    ...oneOf('spec.fsGroupPolicy', spec.fsGroupPolicy, ['File', 'None', 'ReadWriteOnceWithFSType']),
    ...(spec.volumeLifecycleModes ?? []).flatMap((mode) =>
      oneOf('spec.volumeLifecycleModes', mode, ['Persistent', 'Ephemeral']),
    ),
  ];
  const seen = new Set<string>();
  for (const [index, { audience = '', expirationSeconds: seconds }] of tokenRequests.entries()) {
    const field = `spec.tokenRequests[${index}]`;
    if (seen.has(audience)) causes.push(duplicate(`${field}.audience`, audience));
    seen.add(audience);
    if (seconds !== undefined) causes.push(...validateTokenSeconds(`${field}.expirationSeconds`, seconds));
  }
  if (period !== undefined && period < PERIOD_SECONDS_MIN) {
    const why = 'must be greater than or equal to 10 seconds';
    causes.push(invalidValue('spec.nodeAllocatableUpdatePeriodSeconds', period, why));
  }
  if (old === undefined) return causes;
  return [
    ...causes,
    ...immutable('spec.attachedRequired', spec.attachRequired, old.spec?.attachRequired),
    ...immutable('spec.volumeLifecycleModes', spec.volumeLifecycleModes, old.spec?.volumeLifecycleModes),
  ];
}

export function validateCsiStorageCapacity(
  object: KubeCSIStorageCapacity,
  old: KubeCSIStorageCapacity | undefined,
): Cause[] {
  const { storageClassName = '', nodeTopology, capacity } = object;
  const causes = [
    ...validateObjectMetadata(object, old, NAMESPACE_RULES),
    ...validateSelector(nodeTopology, 'nodeTopology'),
    ...errorsAt('storageClassName', storageClassName, subdomainErrors),
    ...(capacity === undefined ? [] : amountCauses('storage', capacity, 'capacity')),
  ];
  if (old === undefined) return causes;
  return [
    ...causes,
    ...immutable('nodeTopology', nodeTopology, old.nodeTopology),
    ...immutable('storageClassName', storageClassName, old.storageClassName),
  ];
}

const NODE_ID_BYTES_MAX = 256;

/** Each driver once, with the id that it has for the node. A stored driver keeps all but its limit of volumes. */
export function validateCsiNode(node: KubeCSINode, old: KubeCSINode | undefined): Cause[] {
  const causes = validateObjectMetadata(node, old, CLUSTER_RULES);
  const before = new Map((old?.spec?.drivers ?? []).map((driver) => [driver.name ?? '', driver]));
  const seen = new Set<string>();
  for (const [index, driver] of (node.spec?.drivers ?? []).entries()) {
    const { name = '', nodeID = '', topologyKeys = [], allocatable } = driver;
    const field = `spec.drivers[${index}]`;
    causes.push(...driverCauses(`${field}.name`, name));
    if (nodeID === '') causes.push(required(`${field}.nodeID`));
    if (byteLength(nodeID) > NODE_ID_BYTES_MAX) {
      causes.push(invalidValue(`${field}.nodeID`, nodeID, `must be ${NODE_ID_BYTES_MAX} characters or less`));
    }
    causes.push(...nonNegative(`${field}.allocatable.count`, allocatable?.count));
    if (seen.has(name)) causes.push(duplicate(`${field}.name`, name));
    seen.add(name);
    const keys = new Set<string>();
    for (const key of topologyKeys) {
      if (key === '') causes.push(required(field));
      if (keys.has(key)) causes.push(duplicate(field, key));
      keys.add(key);
      causes.push(...errorsAt(field, key, qualifiedNameErrors));
    }
    const stored = before.get(name);
    if (stored === undefined) continue;
    const fixed = ({ allocatable: _allocatable, ...rest }: typeof driver) => rest;
    if (!sameJson(fixed(driver), fixed(stored))) causes.push(invalidValue('spec.drivers', driver, IMMUTABLE));
  }
  return causes;
}
