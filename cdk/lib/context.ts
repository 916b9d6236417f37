import { RemovalPolicy } from 'aws-cdk-lib';
import { defined } from '../../shared/defined.ts';
import { Capacity } from './capacity.ts';
import { type CustomDomain, Encryption, InvalidPropsError, type PropFault, RETENTION_DAYS } from './cluster-options.ts';
import type { NodekeeperClusterProps } from './cluster-props.ts';
import type { ClusterNetwork } from './network.ts';

export type ReadContext = (name: string) => unknown;

const REMOVAL: Readonly<Record<string, RemovalPolicy>> = {
  retain: RemovalPolicy.RETAIN,
  destroy: RemovalPolicy.DESTROY,
};
const SWITCH: Readonly<Record<string, boolean>> = { true: true, false: false };
const RETENTION = Object.fromEntries(RETENTION_DAYS.map((days) => [String(days), days]));

/**
 * The props of a cluster from context: `context` in cdk.json, or `-c name=value` of the CLI. The names are in
 * docs/operations/deploy.md. Missing values are left out: the construct has the defaults.
 *
 * @throws InvalidPropsError with every value that cannot be read; the construct checks relations between values
 */
export function clusterPropsFromContext(read: ReadContext): NodekeeperClusterProps {
  const context = new ContextReader(read);
  const props = {
    clusterId: context.text('clusterId'),
    // One cluster per stack, with plain names.
    outputPrefix: undefined,
    policyFile: context.text('policyFile'),
    accessEntriesFile: context.text('accessEntriesFile'),
    restoredTablesFile: context.text('restoredTablesFile'),
    instanceIdentityCertificateFile: context.text('instanceIdentityCertificateFile'),
    capacity: capacityFrom(context),
    nodesMax: context.number('nodesMax'),
    removalPolicy: context.oneOf('removalPolicy', REMOVAL),
    deletionProtection: context.oneOf('deletionProtection', SWITCH),
    logRetention: context.oneOf('logRetentionDays', RETENTION),
    pointInTimeRecoveryDays: context.number('pointInTimeRecoveryDays'),
    requestsPerSecondMax: context.number('requestsPerSecondMax'),
    burstRequestsMax: context.number('burstRequestsMax'),
    accountRequestsPerSecondMax: context.number('accountRequestsPerSecondMax'),
    accountConcurrency: context.number('accountConcurrency'),
    reservedConcurrency: context.numbers('reservedConcurrency'),
    markConcurrencyMax: context.number('markConcurrencyMax'),
    network: networkFrom(context),
    permissionsBoundaryArn: context.text('permissionsBoundaryArn'),
    tags: context.pairs('tags'),
    customDomain: customDomainFrom(context),
    encryption: encryptionFrom(context),
    alarmTopicArn: context.text('alarmTopicArn'),
    alarmEmail: context.text('alarmEmail'),
    runbookBaseUrl: context.text('runbookBaseUrl'),
    dashboard: context.oneOf('dashboard', SWITCH),
  } satisfies { readonly [Prop in keyof NodekeeperClusterProps]: NodekeeperClusterProps[Prop] | undefined };
  if (context.faults.length > 0) throw new InvalidPropsError(context.faults);
  return defined(props);
}

/** Reads context values and collects those that cannot be read. */
class ContextReader {
  readonly faults: PropFault[] = [];
  readonly #read: ReadContext;

  constructor(read: ReadContext) {
    this.#read = read;
  }

  text(name: string): string | undefined {
    const value = this.#read(name);
    if (value === undefined || value === null || value === '') return undefined;
    if (typeof value !== 'object') return String(value);
    this.fault(name, value, 'must be a single value');
    return undefined;
  }

  number(name: string): number | undefined {
    const value = this.text(name);
    if (value === undefined || /^\d{1,9}$/.test(value)) return value === undefined ? undefined : Number(value);
    this.fault(name, value, 'must be a whole number');
    return undefined;
  }

  /** `name=value,name=value`. */
  pairs(name: string): Readonly<Record<string, string>> | undefined {
    const text = this.text(name);
    if (text === undefined) return undefined;
    const pairs = text.split(',').map((pair) => /^([^=]+)=(.*)$/.exec(pair)?.slice(1) as [string, string] | undefined);
    if (pairs.every((pair) => pair !== undefined)) return Object.fromEntries(pairs);
    this.fault(name, text, 'must be name=value, separated by commas');
    return undefined;
  }

  numbers(name: string): Readonly<Record<string, number>> | undefined {
    const pairs = this.pairs(name);
    return pairs && Object.fromEntries(Object.entries(pairs).map(([key, value]) => [key, Number(value)]));
  }

  oneOf<Value>(name: string, values: Readonly<Record<string, Value>>): Value | undefined {
    const value = this.text(name);
    if (value === undefined || Object.hasOwn(values, value)) return value === undefined ? undefined : values[value];
    this.fault(name, value, `must be one of ${Object.keys(values).join(', ')}`);
    return undefined;
  }

  fault(prop: string, value: unknown, rule: string): void {
    this.faults.push({ prop, value, rule });
  }
}

function capacityFrom(context: ContextReader): Capacity | undefined {
  const nodes = context.number('nodes');
  const warmForNodes = context.number('warmForNodes');
  const billing = context.oneOf('capacity', { onDemand: 'onDemand', provisioned: 'provisioned' });
  if ((billing === 'provisioned') !== (nodes !== undefined)) {
    context.fault('nodes', nodes, 'is set together with capacity=provisioned only: the expected number of nodes');
  }
  if (billing === 'provisioned' && warmForNodes !== undefined) {
    context.fault('warmForNodes', warmForNodes, 'requires capacity=onDemand');
  }
  if (nodes !== undefined) return Capacity.provisioned(nodes);
  return warmForNodes === undefined ? undefined : Capacity.onDemand(warmForNodes);
}

function customDomainFrom(context: ContextReader): CustomDomain | undefined {
  const domainName = context.text('domainName');
  const certificateArn = context.text('certificateArn');
  if ((domainName === undefined) !== (certificateArn === undefined)) {
    const prop = domainName === undefined ? 'domainName' : 'certificateArn';
    context.fault(prop, undefined, 'is missing: domainName and certificateArn are set together');
  }
  return domainName === undefined || certificateArn === undefined ? undefined : { domainName, certificateArn };
}

function networkFrom(context: ContextReader): ClusterNetwork | undefined {
  const subnetIds = context.text('subnetIds')?.split(',');
  const securityGroupIds = context.text('securityGroupIds')?.split(',');
  const ipv6 = context.oneOf('subnetIpv6', SWITCH);
  if (subnetIds !== undefined && securityGroupIds !== undefined) {
    return { subnetIds, securityGroupIds, ...defined({ ipv6 }) };
  }
  if (subnetIds !== undefined || securityGroupIds !== undefined || ipv6 !== undefined) {
    const prop = subnetIds === undefined ? 'subnetIds' : 'securityGroupIds';
    context.fault(prop, undefined, 'is missing: subnetIds and securityGroupIds are set together');
  }
  return undefined;
}

function encryptionFrom(context: ContextReader): Encryption | undefined {
  const encryption = context.text('encryption');
  const keyArn = context.text('keyArn');
  if (encryption !== undefined && encryption !== 'awsManaged' && encryption !== 'customerManaged') {
    context.fault('encryption', encryption, 'must be one of awsManaged, customerManaged');
  }
  if (keyArn !== undefined && encryption !== 'customerManaged') {
    context.fault('keyArn', keyArn, 'requires encryption=customerManaged');
  }
  if (encryption === 'awsManaged') return Encryption.awsManaged();
  return encryption === 'customerManaged' ? Encryption.customerManaged(keyArn) : undefined;
}
