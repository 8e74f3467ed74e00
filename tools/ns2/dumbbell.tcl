# N flows over one bottleneck in ns-2, as the example `dumbbell` of narrows-sim: flows, Mbit/s, seconds. By its manual, ns-2 is
# fastest with few headers and manual routes. Prints delivered packets, and CPU seconds of the set-up and in all.
#
#     ns tools/ns2/dumbbell.tcl 10 100 60
foreach {n mbps seconds} $argv break
proc cpu {} {
    set f [open /proc/self/stat]; set fields [split [read $f]]; close $f
    return [expr ([lindex $fields 13] + [lindex $fields 14]) / 100.0]
}
set sim [new Simulator]
remove-all-packet-headers
add-packet-header Common Flags IP TCP
$sim rtproto Manual
Agent/TCP set useHeaders_ false
Agent/TCP set packetSize_ 1000
Agent/TCP set window_ 100000
Agent/TCP set overhead_ 0
set left [$sim node]
set right [$sim node]
$sim duplex-link $left $right ${mbps}Mb 10ms DropTail
$sim queue-limit $left $right [expr int(ceil($mbps * 24.0 / 8.0)) + 1]
$sim queue-limit $right $left 100000
[$left get-module Manual] add-route-to-adj-node -default $right
[$right get-module Manual] add-route-to-adj-node -default $left
for {set i 0} {$i < $n} {incr i} {
    foreach {end router} [list source $left target $right] {
        set node [$sim node]
        set ${end}($i) $node
        $sim duplex-link $node $router 1000Mb 1ms DropTail
        $sim queue-limit $node $router 100000
        $sim queue-limit $router $node 100000
        [$node get-module Manual] add-route-to-adj-node -default $router
        [$router get-module Manual] add-route-to-adj-node $node
    }
    set tcp($i) [new Agent/TCP/Sack1]
    set sink [new Agent/TCPSink/Sack1]
    $sim attach-agent $source($i) $tcp($i)
    $sim attach-agent $target($i) $sink
    $sim connect $tcp($i) $sink
    set ftp [new Application/FTP]
    $ftp attach-agent $tcp($i)
    $sim at [expr double($i) / $n] "$ftp start"
}
set setup 0
$sim at 0 { set setup [cpu] }
$sim at $seconds {
    set delivered 0
    for {set i 0} {$i < $n} {incr i} { incr delivered [expr [$tcp($i) set ack_] + 1] }
    puts "delivered=$delivered setup_s=$setup cpu_s=[cpu]"
    exit 0
}
$sim run
