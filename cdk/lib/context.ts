import { RemovalPolicy } from 'aws-cdk-lib';
import type { Capacity } from './capacity.ts';
import { InvalidPropsError, type PropFault, RETENTION_DAYS } from './cluster-options.ts';
import type { NodekeeperClusterProps } from './nodekeeper-cluster.ts';

export type ReadContext = (name: string) => unknown;

const REMOVAL: Readonly<Record<string, RemovalPolicy>> = {
  retain: RemovalPolicy.RETAIN,
  destroy: RemovalPolicy.DESTROY,
};
const SWITCH: Readonly<Record<string, boolean>> = { true: true, false: false };

/**
 * The props of a cluster from context: `-c name=value` of the CLI, or `context` in cdk.json. Names as in
 * docs/operations/deploy.md; values not given are left out, so that the defaults are those of the construct.
 *
 * @throws InvalidPropsError with every value that cannot be read; what they mean together is checked by the construct
 */
export function clusterPropsFromContext(read: ReadContext): NodekeeperClusterProps {
  const faults: PropFault[] = [];
  const given = (name: string): string | undefined => {
    const value = read(name);
    if (value === undefined || value === null || value === '') return undefined;
    if (typeof value !== 'object') return String(value);
    faults.push({ prop: name, value, rule: 'must be a single value' });
    return undefined;
  };
  const number = (name: string): number | undefined => {
    const value = given(name);
    if (value === undefined || /^\d{1,9}$/.test(value)) return value === undefined ? undefined : Number(value);
    faults.push({ prop: name, value, rule: 'must be a whole number' });
    return undefined;
  };
  const oneOf = <Value>(name: string, values: Readonly<Record<string, Value>>): Value | undefined => {
    const value = given(name);
    if (value === undefined || Object.hasOwn(values, value)) return value === undefined ? undefined : values[value];
    faults.push({ prop: name, value, rule: `must be one of ${Object.keys(values).join(', ')}` });
    return undefined;
  };

  const nodes = number('nodes');
  const warmForNodes = number('warmForNodes');
  const billing = oneOf<Capacity['kind']>('capacity', { onDemand: 'onDemand', provisioned: 'provisioned' });
  if ((billing === 'provisioned') !== (nodes !== undefined)) {
    const rule = 'goes with capacity=provisioned, and that with it: the nodes to provision for';
    faults.push({ prop: 'nodes', value: nodes, rule });
  }
  if (billing === 'provisioned' && warmForNodes !== undefined) {
    faults.push({ prop: 'warmForNodes', value: warmForNodes, rule: 'is for tables on demand' });
  }
  const domainName = given('domainName');
  const certificateArn = given('certificateArn');
  if ((domainName === undefined) !== (certificateArn === undefined)) {
    const prop = domainName === undefined ? 'domainName' : 'certificateArn';
    faults.push({ prop, value: undefined, rule: 'is missing: domainName and certificateArn go together' });
  }
  const encryption = given('encryption');
  const keyArn = given('keyArn');
  if (encryption !== undefined && encryption !== 'awsManaged' && encryption !== 'customerManaged') {
    faults.push({ prop: 'encryption', value: encryption, rule: 'must be one of awsManaged, customerManaged' });
  }
  if (keyArn !== undefined && encryption !== 'customerManaged') {
    faults.push({ prop: 'keyArn', value: keyArn, rule: 'goes with encryption=customerManaged' });
  }
  const logRetention = oneOf(
    'logRetentionDays',
    Object.fromEntries(RETENTION_DAYS.map((days) => [String(days), days])),
  );

  const props = {
    clusterId: given('clusterId'),
    policyFile: given('policyFile'),
    accessEntriesFile: given('accessEntriesFile'),
    restoredTablesFile: given('restoredTablesFile'),
    instanceIdentityCertificateFile: given('instanceIdentityCertificateFile'),
    capacity:
      nodes !== undefined
        ? ({ kind: 'provisioned', nodes } as const)
        : warmForNodes !== undefined
          ? ({ kind: 'onDemand', warmForNodes } as const)
          : undefined,
    removalPolicy: oneOf('removalPolicy', REMOVAL),
    deletionProtection: oneOf('deletionProtection', SWITCH),
    logRetention,
    pointInTimeRecoveryDays: number('pointInTimeRecoveryDays'),
    requestsPerSecondMax: number('requestsPerSecondMax'),
    burstRequestsMax: number('burstRequestsMax'),
    customDomain: domainName === undefined || certificateArn === undefined ? undefined : { domainName, certificateArn },
    encryption:
      encryption === 'customerManaged'
        ? ({ kind: 'customerManaged', ...(keyArn === undefined ? {} : { keyArn }) } as const)
        : undefined,
    alarmTopicArn: given('alarmTopicArn'),
    alarmEmail: given('alarmEmail'),
    runbookBaseUrl: given('runbookBaseUrl'),
  } satisfies { readonly [Prop in keyof NodekeeperClusterProps]: NodekeeperClusterProps[Prop] | undefined };
  if (faults.length > 0) throw new InvalidPropsError(faults);
  return Object.fromEntries(Object.entries(props).filter(([, value]) => value !== undefined));
}
