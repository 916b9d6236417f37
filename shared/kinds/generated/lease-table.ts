// Written by `npm run kinds` from the sources of k8s.io/api and k8s.io/apimachinery.
/** The types of a Lease. */
export const LEASE_TABLE = `
coordination/v1.Lease: kind coordination.k8s.io, 1 metadata+ meta/v1.ObjectMeta, 2 spec+ LeaseSpec
coordination/v1.LeaseSpec: 1 holderIdentity? string, 2 leaseDurationSeconds? int32, 3 acquireTime? microTime,
 4 renewTime? microTime, 5 leaseTransitions? int32, 6 strategy? $CoordinatedLeaseStrategy, 7 preferredHolder? string
meta/v1.ManagedFieldsEntry: 1 manager string, 2 operation $ManagedFieldsOperationType, 3 apiVersion string,
 4 time? time, 6 fieldsType string, 7 fieldsV1? json, 8 subresource string
meta/v1.ObjectMeta: 1 name string, 2 generateName string, 3 namespace string, 4 selfLink string, 5 uid $types.UID,
 6 resourceVersion string, 7 generation int64, 8 creationTimestamp? time, 9 deletionTimestamp? time,
 10 deletionGracePeriodSeconds? int64, 11 labels %string, 12 annotations %string,
 13 ownerReferences *OwnerReference map(uid) merge(uid), 14 finalizers *string set merge,
 17 managedFields *ManagedFieldsEntry
meta/v1.OwnerReference: atomic, 5 apiVersion+! string, 1 kind+! string, 3 name+! string, 4 uid+! $types.UID,
 6 controller? bool, 7 blockOwnerDeletion? bool
`;
