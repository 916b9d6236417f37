/** EC2 in the account and region of the cluster, with its calls counted. */

import type { CloudConfig } from '../config/environment.ts';
import type { Cloud } from '../fleet/instances/cloud.ts';
import { meter } from '../observability/meter.ts';
import { type AwsConnection, awsConnectionFrom } from './connection.ts';
import type { Environment } from './controllers.ts';
import type { Ec2Api } from './ec2/api.ts';
import { ec2Cloud } from './ec2/cloud.ts';
import { countedCalls } from './ec2/counted-calls.ts';
import { loadOnDemand } from './load-on-demand.ts';

export type CloudScope = Pick<CloudConfig, 'clusterId' | 'region' | 'accountId'>;

export function composeCloud(environment: Environment, { clusterId, region, accountId }: CloudScope): Cloud {
  const connection = awsConnectionFrom(environment, 'AWS_ENDPOINT_URL_EC2');
  return ec2Cloud({ api: countedCalls(ec2OnDemand(connection), meter), region, accountId, clusterId });
}

/** EC2's client is as large as the rest of a function. It is loaded with the first call: few ticks ask EC2. */
function ec2OnDemand(connection: AwsConnection): Ec2Api {
  const loaded = loadOnDemand(async () => (await import('./ec2/sdk-api.ts')).sdkEc2Api(connection));
  return {
    describeInstances: async (input) => (await loaded()).describeInstances(input),
    describeVolumes: async (input) => (await loaded()).describeVolumes(input),
    detachVolume: async (input) => (await loaded()).detachVolume(input),
  };
}
