module interop

go 1.24.0

require github.com/IBM/sarama v1.61.1
