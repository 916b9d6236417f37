/**
 * The agent's configuration from its documents and flags. All faults are reported at once. Flags override the file.
 * Defaults are those of a kubelet (pkg/kubelet/apis/config/v1beta1/defaults.go,
 * pkg/kubelet/eviction/defaults_linux.go).
 */
import { defined } from '../../shared/defined.ts';
import { NODE_RUNTIME } from '../../shared/fleet/nodes/taint.ts';
import { isJsonObject } from '../../shared/kubernetes/json.ts';
import type { Taint } from '../../shared/kubernetes/kubernetes.ts';
import { labelErrors, subdomainErrors } from '../../shared/kubernetes/validate-metadata.ts';
import { nearName } from '../../shared/near-name.ts';
import type { AgentConfig, TopologyPolicy } from '../config.ts';
import {
  AGENT_FIELDS,
  FLAGS,
  KUBELET_FIELDS,
  type SettingName,
  type Settings,
  UNUSED_KUBELET_FIELDS,
} from './config-fields.ts';
import { DEFAULT_WITNESS, NO_SUCH_FIELD, type Reader } from './config-readers.ts';
import { leaseDurationSeconds } from './lease.ts';
import { parseNodeIpArgument } from './node-ip.ts';
import { nodeLabelComplaints, registerTaintComplaints } from './node-labels.ts';
import { shutdownSettingFaults } from './shutdown-settings.ts';
import { LINUX_DEFAULTS, type SystemDefaults } from './system-defaults.ts';

export interface ConfigFault {
  /** Name of the setting, or '' if the whole document is at fault. */
  readonly field: string;
  /** A sentence with the field and the expected value. */
  readonly message: string;
  /** `file:line` or `--flag`; absent if the setting is in neither. */
  readonly at?: string;
}

export const describeConfigFault = ({ at, message }: Pick<ConfigFault, 'at' | 'message'>): string =>
  at === undefined ? message : `${at}: ${message}`;

/** One document of a configuration file. */
export interface ConfigDocument {
  readonly value: unknown;
  /** `file:line` of the value at this path, or of the nearest value around it. */
  readonly at: (path: readonly (string | number)[]) => string;
}

export interface ConfigInput {
  readonly documents: readonly ConfigDocument[];
  /** Texts of the flags on the command line, by name without dashes. */
  readonly flags: Readonly<Record<string, string>>;
  /** Host name of this machine. */
  readonly hostname: string;
  /** Default: Linux. */
  readonly system?: SystemDefaults;
}

/** A setting with its value in a separate file. */
export interface FileSetting {
  readonly setting: (typeof MUTUALLY_EXCLUSIVE)[number][0];
  readonly field: (typeof MUTUALLY_EXCLUSIVE)[number][1];
  readonly path: string;
  readonly at?: string;
}

export interface CheckedConfig {
  /** Valid only without faults, and without the settings in `files`. */
  readonly config: AgentConfig;
  readonly files: readonly FileSetting[];
  readonly faults: readonly ConfigFault[];
  readonly warnings: readonly string[];
}

const KUBELET = { apiVersion: 'kubelet.config.k8s.io/v1beta1', kind: 'KubeletConfiguration' };
const AGENT = { apiVersion: 'nodekeeper.dev/v1alpha1', kind: 'AgentConfiguration' };

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const DEFAULT_UPDATE_MS = 10 * SECOND;
/** It is also the time limit of each heartbeat and status request. */
const STATUS_UPDATE_MS_MIN = SECOND;
const DEFAULT_REPORT_MS = 5 * MINUTE;
const DEFAULT_MAX_PODS = 110;
const DEFAULT_HEALTHZ_PORT = 10_248;
const DEFAULT_CLUSTER_ID = 'nodekeeper';
const DEFAULT_KEY_ROTATION_MS = 30 * 24 * 60 * MINUTE;
/** A shorter period is probably a mistake: each rotation is two requests and one heartbeat. */
const KEY_ROTATION_MS_MIN = 10 * SECOND;
const DEFAULT_UPDATE_CHECK_MS = 30 * MINUTE;
/** More often is a mistake: each check is a request. */
const UPDATE_CHECK_MS_MIN = 10 * SECOND;

/** Default of `registerWithTaints` with the runtime `exec`. */
const PROCESSES_ONLY: Taint = { key: NODE_RUNTIME, value: 'exec', effect: 'NoSchedule' };
const TOPOLOGY_POLICIES: readonly TopologyPolicy[] = ['none', 'best-effort', 'restricted', 'single-numa-node'];

/**
 * The intervals at which the status is computed, and written if unchanged. Milliseconds; 0 and undefined mean unset.
 * Setting only the first one sets both.
 */
export function statusFrequencies(
  updateMs: number | undefined,
  reportMs: number | undefined,
): { readonly updateMs: number; readonly reportMs: number } {
  const update = updateMs || DEFAULT_UPDATE_MS;
  return { updateMs: update, reportMs: reportMs || (updateMs ? update : DEFAULT_REPORT_MS) };
}

/** Collects the settings, their places and their faults. */
class Gathering {
  readonly settings: Settings = {};
  readonly faults: ConfigFault[] = [];
  readonly system: SystemDefaults;
  readonly #places = new Map<string, string>();

  constructor(system: SystemDefaults) {
    this.system = system;
  }

  set(setting: SettingName, value: unknown, at: string): void {
    (this.settings as Record<string, unknown>)[setting] = value;
    this.#places.set(setting, at);
  }

  fault(field: string, message: string, at = this.#places.get(field)): void {
    this.faults.push({ field, message, ...defined({ at }) });
  }

  isAtFault(field: string): boolean {
    return this.faults.some((fault) => fault.field === field);
  }

  placeOf(setting: SettingName): { readonly at?: string } {
    const at = this.#places.get(setting);
    return defined({ at });
  }
}

export function checkConfig(input: ConfigInput): CheckedConfig {
  const gathering = new Gathering(input.system ?? LINUX_DEFAULTS);
  const unused = gatherDocuments(input.documents, gathering);
  gatherFlags(input.flags, gathering);
  const { config, files } = assemble(gathering, input.hostname);
  const warnings =
    unused.length === 0 ? [] : [`known fields of a kubelet that this agent does not act on: ${unused.join(', ')}`];
  return { config, files, faults: gathering.faults, warnings };
}

/** Returns the known fields that have no effect, with their places. */
function gatherDocuments(documents: readonly ConfigDocument[], gathering: Gathering): string[] {
  const seen = new Set<string>();
  const unused: string[] = [];
  // AgentConfiguration last: it overrides KubeletConfiguration, whatever their order in the file.
  const kindOf = ({ value }: ConfigDocument): unknown => (isJsonObject(value) ? value['kind'] : undefined);
  const inOrder = [...documents].sort(
    (left, right) => Number(kindOf(left) === AGENT.kind) - Number(kindOf(right) === AGENT.kind),
  );
  for (const document of inOrder) {
    const { value, at } = document;
    if (value === null || value === undefined) continue;
    if (!isJsonObject(value)) {
      gathering.fault('', 'expected a map of fields', at([]));
      continue;
    }
    const expected = [KUBELET, AGENT].find(({ kind }) => kind === value['kind']);
    if (expected === undefined) {
      gathering.fault('kind', `kind ${shown(value['kind'])}: expected ${KUBELET.kind} or ${AGENT.kind}`, at(['kind']));
      continue;
    }
    if (value['apiVersion'] !== expected.apiVersion) {
      const message = `apiVersion ${shown(value['apiVersion'])}: expected ${expected.apiVersion} for kind ${expected.kind}`;
      gathering.fault('apiVersion', message, at(['apiVersion']));
    }
    if (seen.has(expected.kind)) gathering.fault('kind', `${expected.kind} stands twice`, at(['kind']));
    seen.add(expected.kind);
    unused.push(...gatherFields(document, value, expected.kind, gathering));
  }
  return unused;
}

function gatherFields(
  { at }: ConfigDocument,
  fields: Readonly<Record<string, unknown>>,
  kind: string,
  gathering: Gathering,
): string[] {
  const known: Readonly<Record<string, Reader<unknown>>> = kind === KUBELET.kind ? KUBELET_FIELDS : AGENT_FIELDS;
  const unused: string[] = [];
  for (const [field, value] of Object.entries(fields)) {
    if (field === 'apiVersion' || field === 'kind') continue;
    const reader = Object.hasOwn(known, field) ? known[field] : undefined;
    if (reader === undefined) {
      if (kind === KUBELET.kind && UNUSED_KUBELET_FIELDS.has(field)) unused.push(`${field} (${at([field])})`);
      else gathering.fault(field, `${field}: no field of ${kind}${hint(field, kind)}`, at([field]));
      continue;
    }
    // A null leaves the field unset, as in Go.
    if (value === null) continue;
    gatherValue({ setting: field as SettingName, name: field, value, reader, at }, gathering);
    if (field === 'featureGates') unused.push(...unusedGates(value, at, gathering.system));
  }
  return unused;
}

const unusedGates = (gates: unknown, at: ConfigDocument['at'], system: SystemDefaults): string[] =>
  Object.keys(isJsonObject(gates) ? gates : {})
    .filter((gate) => !Object.hasOwn(system.gates, gate))
    .map((gate) => `featureGates.${gate} (${at(['featureGates', gate])})`);

/** The document that has this field, or the correct spelling. */
function hint(field: string, kind: string): string {
  const names = Object.keys(kind === KUBELET.kind ? { ...KUBELET_FIELDS } : { ...AGENT_FIELDS });
  const near = nearName(names, field);
  if (near !== undefined) return `; did you mean ${near}`;
  const other = kind === KUBELET.kind ? AGENT : KUBELET;
  return Object.hasOwn(kind === KUBELET.kind ? AGENT_FIELDS : KUBELET_FIELDS, field)
    ? `; it belongs to ${other.kind}`
    : '';
}

interface Written {
  readonly setting: SettingName;
  /** The name that the user wrote: a field or a flag. */
  readonly name: string;
  readonly value: unknown;
  readonly reader: Reader<unknown>;
  readonly at: (path: readonly (string | number)[]) => string;
}

function gatherValue({ setting, name, value, reader, at }: Written, gathering: Gathering): void {
  const found = reader(value);
  if (found.kind === 'read') {
    gathering.set(setting, found.value, at([setting]));
    return;
  }
  for (const { path, expected } of found.faults) {
    const wrong = path.reduce<unknown>((outer, key) => (outer as Record<string | number, unknown>)?.[key], value);
    const field = path.reduce<string>(
      (outer, key) => (typeof key === 'number' ? `${outer}[${key}]` : `${outer}.${key}`),
      name,
    );
    // Never repeat a secret.
    const repeated = SECRETS.includes(setting) ? '' : ` ${shown(wrong)}`;
    const message = expected === NO_SUCH_FIELD ? `${field}: ${expected}` : `${field}${repeated}: expected ${expected}`;
    gathering.fault(setting, message, at([setting, ...path]));
  }
}

const SECRETS: readonly SettingName[] = ['token', 'bootstrapToken'];

const shown = (value: unknown): string => JSON.stringify(value) ?? 'absent';

function gatherFlags(flags: Readonly<Record<string, string>>, gathering: Gathering): void {
  for (const [name, value] of Object.entries(flags)) {
    const known = Object.hasOwn(FLAGS, name) ? FLAGS[name] : undefined;
    if (known === undefined) gathering.fault('', `--${name}: no such flag`);
    else gatherValue({ ...known, name: `--${name}`, value, at: () => 'command line' }, gathering);
  }
}

const MUTUALLY_EXCLUSIVE = [
  ['certificateAuthority', 'certificateAuthorityFile'],
  ['heartbeatCertificateAuthority', 'heartbeatCertificateAuthorityFile'],
  ['hubCertificateAuthority', 'hubCertificateAuthorityFile'],
  ['bootstrapToken', 'bootstrapTokenFile'],
  ['token', 'tokenFile'],
  ['updatePublicKey', 'updatePublicKeyFile'],
] as const;

function assemble(gathering: Gathering, hostname: string): Pick<CheckedConfig, 'config' | 'files'> {
  const { settings, system } = gathering;
  const frequencies = statusFrequencies(settings.nodeStatusUpdateFrequency, settings.nodeStatusReportFrequency);
  const evictionHard =
    settings.evictionHard === undefined || settings.mergeDefaultEvictionSettings === true
      ? { ...system.evictionHard, ...settings.evictionHard }
      : settings.evictionHard;
  const runtime = oneOf(gathering, 'runtime', system.runtimes, 'none');
  const config: AgentConfig = {
    endpoint: checkedEndpoint(gathering),
    ...defined({
      certificateAuthority: settings.certificateAuthority,
      caHash: checkedCaHash(gathering),
      heartbeatEndpoint: checkedHeartbeatEndpoint(gathering),
      heartbeatCertificateAuthority: settings.heartbeatCertificateAuthority,
      hubEndpoint: checkedHubEndpoint(gathering),
      hubCertificateAuthority: settings.hubCertificateAuthority,
      relay: settings.relay,
      witness: witnessOf(settings),
      services: checkedServices(gathering),
      bootstrapToken: settings.bootstrapToken,
      token: settings.token,
      updatePublicKey: settings.updatePublicKey,
    }),
    clusterId: checkedClusterId(gathering),
    keyRotationPeriodMs: checkedKeyRotationPeriod(gathering),
    updateCheckPeriodMs: checkedUpdateCheckPeriod(gathering),
    rootDirectory: checkedRootDirectory(gathering),
    runtime,
    nodeName: checkedNodeName(gathering, hostname),
    registerNode: settings.registerNode ?? true,
    registerSchedulable: settings.registerSchedulable ?? true,
    registerWithTaints: settings.registerWithTaints ?? (runtime === 'exec' ? [PROCESSES_ONLY] : []),
    nodeLabels: { ...(runtime === 'none' ? {} : { [NODE_RUNTIME]: runtime }), ...settings.nodeLabels },
    nodeIp: settings.nodeIP ?? '',
    providerId: settings.providerID ?? '',
    cloudProvider: oneOf(gathering, 'cloudProvider', ['', 'external'] as const, ''),
    nodeLeaseDurationSeconds: leaseDurationSeconds(settings.nodeLeaseDurationSeconds),
    nodeStatusUpdateFrequencyMs: frequencies.updateMs,
    nodeStatusReportFrequencyMs: frequencies.reportMs,
    enableControllerAttachDetach: settings.enableControllerAttachDetach ?? true,
    localStorageCapacityIsolation: settings.localStorageCapacityIsolation ?? true,
    maxPods: settings.maxPods || DEFAULT_MAX_PODS,
    podsPerCore: settings.podsPerCore ?? 0,
    systemReserved: settings.systemReserved ?? {},
    kubeReserved: settings.kubeReserved ?? {},
    evictionHard,
    evictionSoft: settings.evictionSoft ?? {},
    evictionSoftGracePeriodMs: settings.evictionSoftGracePeriod ?? {},
    evictionMinimumReclaim: settings.evictionMinimumReclaim ?? {},
    evictionMaxPodGracePeriodSeconds: settings.evictionMaxPodGracePeriod ?? 0,
    evictionPressureTransitionPeriodMs: settings.evictionPressureTransitionPeriod || 5 * MINUTE,
    shutdownGracePeriodMs: settings.shutdownGracePeriod ?? 0,
    shutdownGracePeriodCriticalPodsMs: settings.shutdownGracePeriodCriticalPods ?? 0,
    shutdownGracePeriodByPodPriority: settings.shutdownGracePeriodByPodPriority ?? [],
    plannedSilenceOnSleepSeconds: settings.plannedSilenceOnSleepSeconds ?? 0,
    cgroupRoot: checkedCgroupRoot(gathering),
    podPidsMax: settings.podPidsLimit === undefined || settings.podPidsLimit <= 0 ? undefined : settings.podPidsLimit,
    cpuCfsQuota: settings.cpuCFSQuota ?? true,
    enforceNodeAllocatable: settings.enforceNodeAllocatable?.includes('pods') ?? true,
    ...topology(gathering),
    staticPodPath: settings.staticPodPath ?? '',
    rememberPods: oneOf(gathering, 'rememberPods', ['all', 'withoutSecrets', 'none'] as const, 'all'),
    failSwapOn: settings.failSwapOn ?? true,
    swapBehavior: checkedSwapBehavior(gathering),
    featureGates: settings.featureGates ?? {},
    healthzPort: settings.healthzPort ?? DEFAULT_HEALTHZ_PORT,
  };
  checkRelations(gathering, config);
  for (const setting of system.absentSettings) {
    if (Object.hasOwn(settings, setting)) gathering.fault(setting, `${setting}: not supported on Windows`);
  }
  const off = Object.entries(system.gates).filter(([gate]) => config.featureGates?.[gate] === false);
  const gated = off.reduce((before, [, withoutGate]) => withoutGate(before), config);
  return { config: gated, files: fileSettings(gathering) };
}

function fileSettings(gathering: Gathering): FileSetting[] {
  return MUTUALLY_EXCLUSIVE.flatMap(([setting, field]) => {
    const path = gathering.settings[field];
    if (path === undefined || path === '') return [];
    if (gathering.settings[setting] !== undefined) {
      gathering.fault(field, `${field}: expected either this or ${setting}, not both`);
    }
    return [{ setting, field, path, ...gathering.placeOf(field) }];
  });
}

function oneOf<Word extends string>(
  gathering: Gathering,
  field: SettingName,
  words: readonly Word[],
  unset: Word,
): Word {
  const value = gathering.settings[field] ?? unset;
  const word = words.find((each) => each === value);
  if (word !== undefined) return word;
  gathering.fault(field, `${field} ${shown(value)}: expected one of ${words.map(shown).join(', ')}`);
  return unset;
}

function checkedEndpoint(gathering: Gathering): string {
  const { endpoint } = gathering.settings;
  const expected = 'expected the https URL of the cluster, as its output Endpoint has it';
  if (endpoint === undefined || endpoint === '') {
    gathering.fault('endpoint', `endpoint: ${expected}`);
    return '';
  }
  // Tokens are sent over TLS only, on loopback too.
  if (!/^https:\/\/[^/\s]+/.test(endpoint) || !URL.canParse(endpoint)) {
    gathering.fault('endpoint', `endpoint ${shown(endpoint)}: ${expected}`);
  }
  return endpoint.replace(/\/+$/, '');
}

function checkedHeartbeatEndpoint(gathering: Gathering): string | undefined {
  const {
    heartbeatEndpoint = '',
    heartbeatCertificateAuthority,
    heartbeatCertificateAuthorityFile,
  } = gathering.settings;
  const { token, tokenFile } = gathering.settings;
  if (heartbeatEndpoint === '') {
    if (heartbeatCertificateAuthority !== undefined || heartbeatCertificateAuthorityFile !== undefined) {
      gathering.fault('heartbeatEndpoint', 'heartbeatEndpoint: expected the https URL of the relay of the site CA');
    }
    return undefined;
  }
  if (!/^https:\/\/[^/\s]+\/?$/.test(heartbeatEndpoint) || !URL.canParse(heartbeatEndpoint)) {
    const expected = 'expected the https URL of a relay, such as https://relay.site.example:7443';
    gathering.fault('heartbeatEndpoint', `heartbeatEndpoint ${shown(heartbeatEndpoint)}: ${expected}`);
  }
  if (token !== undefined || tokenFile !== undefined) {
    const reason = 'it would pass the relay; use a bootstrap token';
    gathering.fault('heartbeatEndpoint', `heartbeatEndpoint: expected no configured token: ${reason}`);
  }
  return heartbeatEndpoint.replace(/\/+$/, '');
}

function checkedHubEndpoint(gathering: Gathering): string | undefined {
  const { hubEndpoint = '' } = gathering.settings;
  if (hubEndpoint === '') return undefined;
  if (!/^https:\/\/[^/\s]+/.test(hubEndpoint) || !URL.canParse(hubEndpoint)) {
    const expected = 'expected the https URL of the hub of the site, such as https://hub.site.example:6443';
    gathering.fault('hubEndpoint', `hubEndpoint ${shown(hubEndpoint)}: ${expected}`);
  }
  return hubEndpoint.replace(/\/+$/, '');
}

/** Only the relay of a machine can ask others to probe it. */
function witnessOf({ heartbeatEndpoint = '', witness = DEFAULT_WITNESS }: Settings): AgentConfig['witness'] {
  const { enabled, address, port } = witness;
  return enabled && heartbeatEndpoint !== '' ? { address, port } : undefined;
}

/** Of a kubelet. */
const DEFAULT_CLUSTER_DOMAIN = 'cluster.local';

function checkedServices(gathering: Gathering): AgentConfig['services'] {
  const { services, clusterDomain: configured = '' } = gathering.settings;
  const clusterDomain = (configured || DEFAULT_CLUSTER_DOMAIN).toLowerCase().replace(/\.$/, '');
  for (const complaint of subdomainErrors(clusterDomain)) {
    gathering.fault('clusterDomain', `clusterDomain ${shown(configured)}: ${complaint}`);
  }
  if (services?.enabled !== true) return undefined;
  const { enabled: _, ...others } = services;
  return { ...others, clusterDomain };
}

function checkedClusterId(gathering: Gathering): string {
  const clusterId = gathering.settings.clusterId || DEFAULT_CLUSTER_ID;
  for (const complaint of labelErrors(clusterId)) {
    gathering.fault('clusterId', `clusterId ${shown(clusterId)}: ${complaint}`);
  }
  return clusterId;
}

function checkedKeyRotationPeriod(gathering: Gathering): number {
  const { keyRotationPeriod = DEFAULT_KEY_ROTATION_MS } = gathering.settings;
  if (keyRotationPeriod !== 0 && keyRotationPeriod < KEY_ROTATION_MS_MIN) {
    gathering.fault('keyRotationPeriod', 'keyRotationPeriod: expected 0s, which is never, or at least 10s');
  }
  return keyRotationPeriod;
}

function checkedUpdateCheckPeriod(gathering: Gathering): number {
  const periodMs = gathering.settings.updateCheckPeriod || DEFAULT_UPDATE_CHECK_MS;
  if (periodMs < UPDATE_CHECK_MS_MIN) {
    gathering.fault('updateCheckPeriod', 'updateCheckPeriod: expected at least 10s');
  }
  return periodMs;
}

/** Absent with an authority: that one is used. */
function checkedCaHash(gathering: Gathering): string | undefined {
  const { caHash, certificateAuthority, certificateAuthorityFile } = gathering.settings;
  if (caHash === undefined || certificateAuthority !== undefined || certificateAuthorityFile !== undefined)
    return undefined;
  if (!/^sha256:[0-9a-f]{64}$/.test(caHash)) {
    gathering.fault('caHash', `caHash ${shown(caHash)}: expected sha256: and 64 hexadecimal digits`);
  }
  return caHash;
}

function checkedRootDirectory(gathering: Gathering): string {
  const { settings, system } = gathering;
  const rootDirectory = settings.rootDirectory || system.rootDirectory;
  if (!system.isAbsolutePath(rootDirectory)) {
    gathering.fault('rootDirectory', `rootDirectory ${shown(rootDirectory)}: expected an absolute path`);
  }
  return rootDirectory;
}

/** `/`, which is the default, means the root, as upstream. */
function checkedCgroupRoot(gathering: Gathering): string {
  const { cgroupRoot = '' } = gathering.settings;
  const isPlain = !cgroupRoot.split('/').includes('..');
  if (cgroupRoot !== '' && !(cgroupRoot.startsWith('/') && isPlain)) {
    gathering.fault(
      'cgroupRoot',
      `cgroupRoot ${shown(cgroupRoot)}: expected an absolute path below the root of cgroup v2`,
    );
  }
  return cgroupRoot;
}

function checkedNodeName(gathering: Gathering, hostname: string): string {
  const nodeName = (gathering.settings.hostnameOverride || hostname).trim().toLowerCase();
  for (const complaint of subdomainErrors(nodeName)) {
    gathering.fault('hostnameOverride', `node name ${shown(nodeName)}: ${complaint}`);
  }
  return nodeName;
}

const SWAP_BEHAVIORS = ['', 'NoSwap', 'LimitedSwap'] as const;

function checkedSwapBehavior(gathering: Gathering): AgentConfig['swapBehavior'] {
  const { memorySwap, featureGates } = gathering.settings;
  const value = memorySwap?.['swapBehavior'] ?? '';
  const behavior = SWAP_BEHAVIORS.find((each) => each === value);
  if (behavior === undefined) {
    const expected = 'must be one of: "", "LimitedSwap" or "NoSwap"';
    gathering.fault('memorySwap', `invalid configuration: memorySwap.swapBehavior ${shown(value)} ${expected}`);
  } else if (behavior !== '' && featureGates?.['NodeSwap'] === false) {
    const message =
      'invalid configuration: memorySwap.swapBehavior cannot be set when the feature gate NodeSwap is off';
    gathering.fault('memorySwap', message);
  }
  return behavior ?? '';
}

/** Policy none reads neither scope nor options. Options are checked later, because they depend on the machine. */
function topology(
  gathering: Gathering,
): Pick<AgentConfig, 'topologyManagerPolicy' | 'topologyManagerScope' | 'topologyManagerPolicyOptions'> {
  const { topologyManagerPolicy, topologyManagerScope, topologyManagerPolicyOptions } = gathering.settings;
  const named = topologyManagerPolicy || 'none';
  const policy = TOPOLOGY_POLICIES.find((each) => each === named);
  if (policy === undefined) gathering.fault('topologyManagerPolicy', `unknown policy: ${shown(named)}`);
  const scope = topologyManagerScope || 'container';
  if (named !== 'none' && scope !== 'container' && scope !== 'pod') {
    gathering.fault('topologyManagerScope', `unknown scope: ${shown(scope)}`);
  }
  return {
    topologyManagerPolicy: policy ?? 'none',
    topologyManagerScope: scope === 'pod' ? 'pod' : 'container',
    topologyManagerPolicyOptions: topologyManagerPolicyOptions ?? {},
  };
}

function checkRelations(gathering: Gathering, config: AgentConfig): void {
  if (config.nodeLeaseDurationSeconds < 0) {
    const message = 'invalid configuration: nodeLeaseDurationSeconds must be greater than 0';
    gathering.fault('nodeLeaseDurationSeconds', message);
  }
  for (const signal of Object.keys(config.evictionSoft)) {
    if (config.evictionSoftGracePeriodMs[signal] !== undefined || gathering.isAtFault('evictionSoftGracePeriod'))
      continue;
    // Upstream's text (ParseThresholdConfig).
    const message = `grace period must be specified for the soft eviction threshold ${signal}`;
    gathering.fault('evictionSoft', message);
  }
  for (const message of nodeLabelComplaints(config.nodeLabels)) gathering.fault('nodeLabels', message);
  for (const message of registerTaintComplaints(config.registerWithTaints)) {
    gathering.fault('registerWithTaints', message);
  }
  // The only accepted cloud provider is `external`, so dual-stack is always allowed.
  const nodeIps = parseNodeIpArgument(config.nodeIp, true);
  if (nodeIps.kind === 'refused') gathering.fault('nodeIP', `nodeIP ${shown(config.nodeIp)}: ${nodeIps.message}`);
  // A period that cannot be read says nothing about the other one.
  if (!['shutdownGracePeriod', 'shutdownGracePeriodCriticalPods'].some((field) => gathering.isAtFault(field))) {
    for (const message of shutdownSettingFaults(config)) gathering.fault('shutdownGracePeriod', message);
  }
  if (config.nodeStatusUpdateFrequencyMs < STATUS_UPDATE_MS_MIN) {
    const message = 'nodeStatusUpdateFrequency: expected at least 1s; a request that takes longer counts as failed';
    gathering.fault('nodeStatusUpdateFrequency', message);
  }
}
