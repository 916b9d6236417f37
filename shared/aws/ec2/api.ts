/**
 * The three calls to EC2 that we make, in the SDK's shapes. Only the fields that we read are named. sdk-api.ts
 * implements them; errors.ts classifies what they throw.
 */
export interface DescribeInput {
  /** At most 200 values. A filter instead of ids: one unknown id would fail the call for all others. */
  readonly filter: { readonly name: 'instance-id' | 'volume-id'; readonly values: readonly string[] };
  readonly nextToken?: string;
}

/**
 * One instance by its id. For an unknown id EC2 returns the error InvalidInstanceID.NotFound, for an instance of
 * another account a response without an instance. A filter returns nothing for both. That rests on EC2's API reference.
 */
export interface DescribeById {
  readonly instanceId: string;
}

export interface DescribedInstance {
  readonly InstanceId?: string | undefined;
  readonly InstanceType?: string | undefined;
  readonly State?: { readonly Name?: string | undefined } | undefined;
  readonly LaunchTime?: Date | undefined;
  readonly Placement?:
    | { readonly AvailabilityZone?: string | undefined; readonly AvailabilityZoneId?: string | undefined }
    | undefined;
  readonly RootDeviceName?: string | undefined;
  readonly PrivateDnsName?: string | undefined;
  readonly PublicDnsName?: string | undefined;
  readonly PublicIpAddress?: string | undefined;
  readonly NetworkInterfaces?: readonly DescribedInterface[] | undefined;
}

export interface DescribedInterface {
  readonly Status?: string | undefined;
  readonly Attachment?: { readonly DeviceIndex?: number | undefined } | undefined;
  readonly PrivateIpAddresses?: readonly { readonly PrivateIpAddress?: string | undefined }[] | undefined;
  readonly Ipv6Addresses?: readonly { readonly Ipv6Address?: string | undefined }[] | undefined;
}

export interface InstancesPage {
  /** Absent: this is not a response to this call. */
  readonly Reservations?:
    | readonly {
        readonly OwnerId?: string | undefined;
        readonly Instances?: readonly DescribedInstance[] | undefined;
      }[]
    | undefined;
  readonly NextToken?: string | undefined;
}

export interface DescribedVolume {
  readonly VolumeId?: string | undefined;
  readonly Tags?: readonly { readonly Key?: string | undefined; readonly Value?: string | undefined }[] | undefined;
  /** The AWS service that manages the volume. */
  readonly Operator?: { readonly Managed?: boolean | undefined } | undefined;
  readonly Attachments?:
    | readonly {
        readonly InstanceId?: string | undefined;
        readonly Device?: string | undefined;
        readonly State?: string | undefined;
        /** ARN of the AWS-managed resource it is attached to. */
        readonly AssociatedResource?: string | undefined;
        readonly InstanceOwningService?: string | undefined;
      }[]
    | undefined;
}

export interface VolumesPage {
  readonly Volumes?: readonly DescribedVolume[] | undefined;
  readonly NextToken?: string | undefined;
}

export interface Ec2Api {
  describeInstances(input: DescribeInput | DescribeById): Promise<InstancesPage>;
  describeVolumes(input: DescribeInput): Promise<VolumesPage>;
  detachVolume(input: {
    readonly volumeId: string;
    readonly instanceId: string;
    readonly force: boolean;
  }): Promise<void>;
}
