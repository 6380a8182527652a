# Process 1 of one host of the rig; rig.py starts it in new namespaces and says where everything is:
# NAME, ADDRESS, RIG (the rig's folder), SYSTEM (the Debian below), SHARED (folders of this machine
# that it sees), GPUS, LOCKS (far: locks hold on all hosts; near: they end at the host), CONTROL
# (the control groups' controllers, with spaces).
set -eu
hostname "$NAME"
ip link set lo up
touch "$RIG/run/$NAME.waits" # For its cable.
while [ -e "$RIG/run/$NAME.waits" ]; do sleep 0.05; done
ip addr add "$ADDRESS/24" dev eth0
ip link set eth0 up

mount -t tmpfs host /mnt
mkdir /mnt/upper /mnt/work /mnt/root
root=/mnt/root
mount -t overlay host -o "lowerdir=$SYSTEM,upperdir=/mnt/upper,workdir=/mnt/work" $root
for folder in run var/tmp dev; do mkdir -p $root/$folder; mount -t tmpfs "$NAME" $root/$folder; done
mount -t tmpfs -o size=200m "$NAME" $root/tmp
chmod 1777 $root/tmp $root/var/tmp
cp -a /dev/null /dev/zero /dev/full /dev/random /dev/urandom /dev/tty /dev/fuse $root/dev/
mkdir $root/dev/pts $root/dev/shm
ln -s pts/ptmx $root/dev/ptmx
ln -s /proc/self/fd $root/dev/fd
mount -t devpts -o newinstance,ptmxmode=0666 pts $root/dev/pts
mount -t tmpfs shm $root/dev/shm
number=0
while [ $number -lt "$GPUS" ]; do
  mknod -m 666 $root/dev/nvidia$number c 195 $number # No driver behind it.
  number=$((number + 1))
done
mount -t proc proc $root/proc
mount -t sysfs sys $root/sys
if [ -n "$CONTROL" ]; then
  mount -t tmpfs groups $root/sys/fs/cgroup
  for one in $CONTROL; do
    mkdir $root/sys/fs/cgroup/$one
    mount -t cgroup -o "$one" groups $root/sys/fs/cgroup/$one
  done
fi
for folder in $SHARED "$RIG"; do mkdir -p "$root$folder"; mount --bind "$folder" "$root$folder"; done
if [ "$LOCKS" = far ]; then
  mount --bind "$RIG/disk" "$root$RIG/home"
else
  bindfs "$RIG/disk" "$root$RIG/home"
fi
mkdir -p $root/etc/slurm $root/run/munge $root/var/spool/slurmd $root/etc/munge
mount --bind "$RIG/etc" $root/etc/slurm
cp "$RIG/etc/hosts" $root/etc/hosts
cp "$RIG/etc/munge.key" $root/etc/munge/munge.key
echo "$NAME" >$root/etc/hostname
: >$root/etc/resolv.conf
cd $root
pivot_root . mnt
umount -l /mnt
cd /
export HOME="$RIG/home"

chown munge: /etc/munge/munge.key /run/munge
chmod 400 /etc/munge/munge.key
su -s /bin/sh munge -c 'munged --force --log-file=/run/munge/log --seed-file=/run/munge/seed'
case $NAME in
  controller) slurmctld -i ;;
  n*) slurmd ;;
esac
touch "$RIG/run/$NAME.up"
while :; do sleep 3600 & wait; done # A shell as process 1 takes away what has ended.
