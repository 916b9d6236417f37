/** EC2 in the account and region of the cluster, with its calls counted. */
import { ec2Cloud } from '../shared/adapters/ec2/cloud.ts';
import { countedCalls } from '../shared/adapters/ec2/counted-calls.ts';
import { ec2ConnectionFrom, sdkEc2Api } from '../shared/adapters/ec2/sdk-api.ts';
import type { CloudConfig } from '../shared/config/environment.ts';
import { meter } from '../shared/observability/meter.ts';
import type { Cloud } from '../shared/ports/cloud.ts';
import type { Environment } from './controllers.ts';

export type CloudScope = Pick<CloudConfig, 'clusterId' | 'region' | 'accountId'>;

export const composeCloud = (environment: Environment, { clusterId, region, accountId }: CloudScope): Cloud =>
  ec2Cloud({ api: countedCalls(sdkEc2Api(ec2ConnectionFrom(environment)), meter), region, accountId, clusterId });
