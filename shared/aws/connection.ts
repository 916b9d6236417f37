/** Region, endpoint and credentials of AWS, for every adapter that calls it. */
export interface AwsCredentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
}

export interface AwsConnection {
  readonly region: string;
  readonly credentials: AwsCredentials;
  /** Only for a local replacement of the service, in local mode and tests. */
  readonly endpoint?: string;
}

/**
 * The connection in a Lambda's environment.
 *
 * @param endpointVariable name of the variable with the endpoint of a local replacement
 * @throws RangeError that names every missing variable at once
 */
export function awsConnectionFrom(
  environment: Readonly<Record<string, string | undefined>>,
  endpointVariable: string,
): AwsConnection {
  const names = ['AWS_REGION', 'AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY'] as const;
  const missing = names.filter((name) => !environment[name]);
  if (missing.length > 0) throw new RangeError(`missing from the environment: ${missing.join(', ')}`);
  const sessionToken = environment['AWS_SESSION_TOKEN'];
  const endpoint = environment[endpointVariable];
  return {
    region: environment['AWS_REGION']!,
    credentials: {
      accessKeyId: environment['AWS_ACCESS_KEY_ID']!,
      secretAccessKey: environment['AWS_SECRET_ACCESS_KEY']!,
      ...(sessionToken ? { sessionToken } : {}),
    },
    ...(endpoint ? { endpoint } : {}),
  };
}

/** The name of a region, for patterns: eu-west-1, us-gov-west-1, eusc-de-east-1. */
export const REGION_PATTERN = String.raw`[a-z]{2,4}(?:-[a-z]+)+-\d+`;

/**
 * Domains by the beginning of the region's name. Source: partitions of the AWS SDK and `RegionInfo` of the AWS CDK. No
 * prefix is the beginning of another.
 */
const DOMAINS: readonly (readonly [prefix: string, domain: string])[] = [
  ['cn-', 'amazonaws.com.cn'],
  ['us-iso-', 'c2s.ic.gov'],
  ['us-isob-', 'sc2s.sgov.gov'],
  ['eu-isoe-', 'cloud.adc-e.uk'],
  ['us-isof-', 'csp.hci.ic.gov'],
  ['eusc-', 'amazonaws.eu'],
];

/**
 * Host of a service's endpoint in a region. China, the isolated and the sovereign regions have domains of their own.
 */
export const awsHost = (service: string, region: string): string => {
  const [, domain = 'amazonaws.com'] = DOMAINS.find(([prefix]) => region.startsWith(prefix)) ?? [];
  return `${service}.${region}.${domain}`;
};

/** The endpoint of a service: the connection's own if it has one. */
export const endpointOf = (
  { region, endpoint }: { readonly region: string; readonly endpoint?: string | undefined },
  /** The name in the host name: dynamodb, ec2, logs … */
  service: string,
): URL => new URL(endpoint ?? `https://${awsHost(service, region)}`);
