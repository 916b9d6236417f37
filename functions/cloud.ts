/** EC2 in the account and region of the cluster, with its calls counted: what the functions that ask it plug in. */
import { ec2Cloud } from '../shared/adapters/ec2/cloud.ts';
import { countedCalls } from '../shared/adapters/ec2/counted-calls.ts';
import { ec2ConnectionFrom, queryEc2Api } from '../shared/adapters/ec2/query-api.ts';
import type { CloudConfig } from '../shared/config/environment.ts';
import { meter } from '../shared/observability/meter.ts';
import type { Cloud } from '../shared/ports/cloud.ts';
import type { Environment } from './controllers.ts';

export const composeCloud = (
  environment: Environment,
  { clusterId, region, accountId }: Pick<CloudConfig, 'clusterId' | 'region' | 'accountId'>,
): Cloud =>
  ec2Cloud({ api: countedCalls(queryEc2Api(ec2ConnectionFrom(environment)), meter), region, accountId, clusterId });
