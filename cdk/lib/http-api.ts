import { Validations } from 'aws-cdk-lib';
import {
  type CfnStage,
  DomainName,
  HttpApi,
  HttpMethod,
  HttpStage,
  MappingValue,
  ParameterMapping,
  SecurityPolicy,
} from 'aws-cdk-lib/aws-apigatewayv2';
import { HttpLambdaIntegration } from 'aws-cdk-lib/aws-apigatewayv2-integrations';
import { Certificate } from 'aws-cdk-lib/aws-certificatemanager';
import type { IFunction } from 'aws-cdk-lib/aws-lambda';
import { Construct } from 'constructs';
import { HEARTBEAT_URL_HEADER } from '../../shared/fleet/nodes/heartbeat-url.ts';
import { LEASE_BATCHES_PATH } from '../../shared/fleet/nodes/lease-batch.ts';
import type { CustomDomain } from './cluster-options.ts';

/** The limit of all requests that are no heartbeats is requestsPerSecondMax up to here. */
const OTHER_REQUESTS_PER_SECOND = 2_000;
/** Their share of requestsPerSecondMax in a larger cluster: registrations, status posts and users. */
const OTHER_REQUESTS_SHARE = 0.25;

/** The Lease of one node, which kubelets and agents renew. */
export const NODE_LEASE_PATH = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{name}';

export interface FrontDoorProps {
  readonly clusterId: string;
  readonly heartbeat: IFunction;
  /** URL of function heartbeat, which agents learn from the answers to their heartbeats. Undefined: it has none. */
  readonly heartbeatUrl: string | undefined;
  readonly api: IFunction;
  /** Heartbeats per second of all nodes together. Limits of the other requests follow from it: routeLimits. */
  readonly requestsPerSecondMax: number;
  /** Requests that may arrive at once. */
  readonly burstRequestsMax: number;
  readonly customDomain: CustomDomain | undefined;
}

/**
 * Limits per route. Heartbeats have a token bucket of their own: a storm of other requests, such as a client that
 * retries without a pause, is answered 429 and uses no token of a heartbeat. The others get less in a large cluster:
 * both together must stay below the limit of the account, which they share.
 */
export function routeLimits({
  requestsPerSecondMax,
  burstRequestsMax,
}: Pick<FrontDoorProps, 'requestsPerSecondMax' | 'burstRequestsMax'>) {
  const others = Math.min(
    requestsPerSecondMax,
    Math.max(OTHER_REQUESTS_PER_SECOND, Math.ceil(requestsPerSecondMax * OTHER_REQUESTS_SHARE)),
  );
  return {
    heartbeats: { rateLimit: requestsPerSecondMax, burstLimit: burstRequestsMax },
    others: { rateLimit: others, burstLimit: Math.min(burstRequestsMax, others * 2) },
  };
}

/**
 * A function cannot know its own URL: CloudFormation would need the URL before the function. So the integration sends
 * it along with each heartbeat.
 */
const parameterMappingOf = ({ heartbeatUrl }: Pick<FrontDoorProps, 'heartbeatUrl'>) =>
  heartbeatUrl === undefined
    ? {}
    : {
        parameterMapping: new ParameterMapping().overwriteHeader(
          HEARTBEAT_URL_HEADER,
          MappingValue.custom(heartbeatUrl),
        ),
      };

/**
 * The HTTP API. It routes renewals of node Leases, single or in batches, to heartbeat and everything else to api. Both
 * functions authenticate requests themselves: an authorizer would double the price of a heartbeat. No CORS: no browser
 * calls it.
 */
export class FrontDoor extends Construct {
  readonly endpoint: string;
  readonly apiId: string;
  /** Target of the DNS record of the custom domain. */
  readonly domainTarget: string | undefined;

  constructor(scope: Construct, id: string, props: FrontDoorProps) {
    super(scope, id);
    const api = new HttpApi(this, 'Api', {
      apiName: props.clusterId,
      description: 'Nodekeeper: the Kubernetes API of nodes, leases and pods',
      createDefaultStage: false,
      defaultIntegration: new HttpLambdaIntegration('Api', props.api),
    });
    const leaseMethods = [HttpMethod.PUT, HttpMethod.PATCH];
    const integration = new HttpLambdaIntegration('Heartbeat', props.heartbeat, parameterMappingOf(props));
    const leaseRoutes = [
      ...api.addRoutes({ path: NODE_LEASE_PATH, methods: leaseMethods, integration }),
      ...api.addRoutes({ path: LEASE_BATCHES_PATH, methods: [HttpMethod.POST], integration }),
    ];
    const { customDomain } = props;
    const domain =
      customDomain === undefined
        ? undefined
        : new DomainName(this, 'Domain', {
            domainName: customDomain.domainName,
            certificate: Certificate.fromCertificateArn(this, 'Certificate', customDomain.certificateArn),
            securityPolicy: SecurityPolicy.TLS_1_2,
          });
    const limits = routeLimits(props);
    const stage = new HttpStage(this, 'Stage', {
      httpApi: api,
      stageName: '$default',
      autoDeploy: true,
      throttle: limits.others,
      ...(domain === undefined ? {} : { domainMapping: { domainName: domain } }),
    });
    const { rateLimit, burstLimit } = limits.heartbeats;
    // A machine sends its heartbeat itself or through a relay, so a bucket for batches adds no load.
    const throttled = [...leaseMethods.map((method) => `${method} ${NODE_LEASE_PATH}`), `POST ${LEASE_BATCHES_PATH}`];
    (stage.node.defaultChild as CfnStage).routeSettings = Object.fromEntries(
      throttled.map((route) => [route, { ThrottlingRateLimit: rateLimit, ThrottlingBurstLimit: burstLimit }]),
    );
    // A stage with settings of a route that does not exist yet is refused.
    stage.node.addDependency(...leaseRoutes);
    // The API's own name stays available: machines that were set up before the custom domain keep sending heartbeats.
    this.apiId = api.apiId;
    this.endpoint = customDomain === undefined ? api.apiEndpoint : `https://${customDomain.domainName}`;
    this.domainTarget = domain?.regionalDomainName;

    Validations.of(stage).acknowledge({
      id: 'AwsSolutions-APIG1',
      reason:
        'An access log line per heartbeat would cost more than the heartbeat. The functions log refused requests.',
    });
    Validations.of(api).acknowledge({
      id: 'AwsSolutions-APIG4',
      reason: 'The functions check bearer tokens themselves and answer 401 and 403.',
    });
  }
}
