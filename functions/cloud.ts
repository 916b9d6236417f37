/** EC2 in the account and region of the cluster, with its calls counted. */
import { type AwsConnection, awsConnectionFrom } from '../shared/adapters/aws-connection/connection.ts';
import type { Ec2Api } from '../shared/adapters/ec2/api.ts';
import { ec2Cloud } from '../shared/adapters/ec2/cloud.ts';
import { countedCalls } from '../shared/adapters/ec2/counted-calls.ts';
import type { CloudConfig } from '../shared/config/environment.ts';
import { meter } from '../shared/observability/meter.ts';
import type { Cloud } from '../shared/ports/cloud.ts';
import type { Environment } from './controllers.ts';
import { loadOnDemand } from './load-on-demand.ts';

export type CloudScope = Pick<CloudConfig, 'clusterId' | 'region' | 'accountId'>;

export function composeCloud(environment: Environment, { clusterId, region, accountId }: CloudScope): Cloud {
  const connection = awsConnectionFrom(environment, 'AWS_ENDPOINT_URL_EC2');
  return ec2Cloud({ api: countedCalls(ec2OnDemand(connection), meter), region, accountId, clusterId });
}

/** EC2's client is as large as the rest of a function. It is loaded with the first call: few ticks ask EC2. */
function ec2OnDemand(connection: AwsConnection): Ec2Api {
  const loaded = loadOnDemand(async () => (await import('../shared/adapters/ec2/sdk-api.ts')).sdkEc2Api(connection));
  return {
    describeInstances: async (input) => (await loaded()).describeInstances(input),
    describeVolumes: async (input) => (await loaded()).describeVolumes(input),
    detachVolume: async (input) => (await loaded()).detachVolume(input),
  };
}
