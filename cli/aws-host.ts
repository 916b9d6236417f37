/** Host of a service's endpoint in a region. China's regions have a domain of their own. */
export const awsHost = (service: string, region: string): string =>
  `${service}.${region}.amazonaws.com${region.startsWith('cn-') ? '.cn' : ''}`;
